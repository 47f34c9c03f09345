// SPDX-License-Identifier: GPL-2.0
/* Sockets of the network passed over AF_UNIX. */
#include "oracle.h"

/* Ends the program where the passing itself is refused: nobody would get anything. */
static void pass(int over, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	if (T(sendmsg(over, &m, 0)) < 0)
		exit(2);
}

static int take(int over, int flags, bool silent)
{
	char control[CMSG_SPACE(sizeof(int))] = "", b;
	struct iovec iov = { &b, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;
	int fd = -1;

	if (silent)
		must(recvmsg(over, &m, flags));
	else
		T(recvmsg(over, &m, flags));
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	return fd;
}

int main(void)
{
	int ux[2], u[2], fd, status;
	char b[16] = "";
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	udp_pair(AF_INET, u);
	pass(ux[0], u[0]);
	fd = take(ux[1], MSG_CMSG_CLOEXEC, false);
	say("got one %d, another number %d, cloexec %d", fd >= 0, fd != u[0], fcntl(fd, F_GETFD));
	close(u[0]);
	T(send(fd, "passed", 6, 0));
	T(recv(u[1], b, 16, 0));

	pid = must(fork());
	if (!pid) {
		close(fd);
		fd = take(ux[1], 0, true);
		must(send(fd, "child", 5, 0));
		_exit(0);
	}
	pass(ux[0], fd);
	T(recv(u[1], b, 16, 0));
	must(waitpid(pid, &status, 0));
	say("%.5s %d", b, status);
	return 0;
}
