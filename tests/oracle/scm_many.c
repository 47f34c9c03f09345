// SPDX-License-Identifier: GPL-2.0
/* Many descriptors of all sorts in one message: each comes where it belongs. */
#include "scm.h"

static void one_type(int type)
{
	int ux[2], p[2], tcp[2], fds[8], i;
	struct parcel got;

	must(socketpair(AF_UNIX, type, 0, ux));
	must(pipe(p));
	tcp_pair(AF_INET, tcp);
	fds[0] = p[0];
	fds[1] = tcp[0];
	fds[2] = listener(AF_INET6, 4);
	fds[3] = p[1];
	fds[4] = tcp[0];			/* the same once more */
	fds[5] = ux[0];				/* an AF_UNIX one */
	fds[6] = must(socket(AF_NETLINK, SOCK_RAW, 0));
	fds[7] = must(open("/dev/null", O_RDONLY));
	T(pass(ux[0], fds, 8, 0));
	T(take(ux[1], &got, sizeof(got.control), 0));
	say("%d came, flags %s", got.count, msg_flags(got.header.msg_flags));
	for (i = 0; i < got.count; i++)
		say("%d: %s, flags %d", i, kind(got.fd[i]), fcntl(got.fd[i], F_GETFD));
	for (i = 1; i < got.count; i++)
		need(got.fd[i] > got.fd[i - 1]);
	T(write(got.fd[1], "one", 3));
	T(write(got.fd[4], "two", 3));
	T(recv(tcp[1], got.data, 6, MSG_WAITALL));
	say("%.6s", got.data);
	T(write(got.fd[3], "pipe", 4));
	T(read(fds[0], got.data, 4));
	for (i = 0; i < got.count; i++)
		must(close(got.fd[i]));
	say("the sender's: %s, %s", kind(fds[1]), kind(fds[2]));
	for (i = 0; i < 8; i++)
		if (i != 4 && i != 5)
			must(close(fds[i]));
	say("%s", end_of(tcp[1]));
	close(ux[0]);
	close(ux[1]);
}

/* Two SCM_RIGHTS in one message arrive as one. */
static void two_headers(void)
{
	int ux[2], u[2], p[2], i;
	struct parcel out, got;
	struct cmsghdr *c;

	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ux));
	udp_pair(AF_INET, u);
	must(pipe(p));
	packed(&out, 1, u, 2);
	out.header.msg_controllen = CMSG_SPACE(8) + CMSG_SPACE(12);
	c = CMSG_NXTHDR(&out.header, CMSG_FIRSTHDR(&out.header));
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(12);
	memcpy(CMSG_DATA(c), (int[]){ p[0], u[1], p[1] }, 12);
	T(sendmsg(ux[0], &out.header, 0));
	T(take(ux[1], &got, sizeof(got.control), MSG_CMSG_CLOEXEC));
	for (i = 0; i < got.count; i++)
		say("%d: %s, flags %d", i, kind(got.fd[i]), fcntl(got.fd[i], F_GETFD));
}

int main(void)
{
	struct parcel got;
	int ux[2], fds[MOST + 1], i;

	one_type(SOCK_STREAM);
	one_type(SOCK_DGRAM);
	one_type(SOCK_SEQPACKET);
	two_headers();

	/* As many as there may be, and one more. */
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	for (i = 0; i <= MOST; i++)
		fds[i] = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(pass(ux[0], fds, MOST + 1, 0));
	T(pass(ux[0], fds, MOST, 0));
	T(take(ux[1], &got, sizeof(got.control), 0));
	say("%d", got.count);
	for (i = 0; i < got.count; i++)
		need(!strcmp(kind(got.fd[i]), "inet other"));
	return 0;
}
