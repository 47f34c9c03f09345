// SPDX-License-Identifier: GPL-2.0
/* A full receive buffer drops datagrams silently; SO_RXQ_OVFL counts them. */
#include "oracle.h"

int main(void)
{
	static char b[1000], control[128];
	struct iovec iov = { b, sizeof(b) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	int u[2], got = 0, failed = 0;
	uint32_t dropped = 0;

	udp_pair(AF_INET, u);
	must(set_int(u[1], SOL_SOCKET, SO_RCVBUF, 20000));
	T(set_int(u[1], SOL_SOCKET, SO_RXQ_OVFL, 1));
	for (int i = 0; i < 500; i++)
		if (send(u[0], b, sizeof(b), 0) != sizeof(b))
			failed++;
	N(failed);
	while (recv(u[1], b, sizeof(b), MSG_DONTWAIT) > 0)
		got++;
	must(send(u[0], b, 1, 0));
	m.msg_controllen = sizeof(control);
	T(recvmsg(u[1], &m, 0));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&dropped, CMSG_DATA(c), 4);
	say("some arrived %d, some not %d, sum right %d", got > 0, dropped > 0, got + (int)dropped == 500);
	return 0;
}
