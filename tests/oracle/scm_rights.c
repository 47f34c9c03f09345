// SPDX-License-Identifier: GPL-2.0
/* Sockets of the network passed over AF_UNIX, in a process and to its child. */
#include "scm.h"

int main(void)
{
	int ux[2], u[2], fd, status;
	char b[16] = "";
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	udp_pair(AF_INET, u);
	T(pass_one(ux[0], u[0]));
	fd = take_one(ux[1], MSG_CMSG_CLOEXEC);
	say("got one %d, another number %d, cloexec %d", fd >= 0, fd != u[0], fcntl(fd, F_GETFD));
	close(u[0]);
	T(send(fd, "passed", 6, 0));
	T(recv(u[1], b, 16, 0));

	pid = must(fork());
	if (!pid) {
		close(fd);
		fd = take_one(ux[1], 0);
		must(send(fd, "child", 5, 0));
		_exit(fcntl(fd, F_GETFD));
	}
	T(pass_one(ux[0], fd));
	T(recv(u[1], b, 16, 0));
	must(waitpid(pid, &status, 0));
	say("%.5s %d", b, status);
	return 0;
}
