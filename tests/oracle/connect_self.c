// SPDX-License-Identifier: GPL-2.0
/* A socket connected to itself: TCP's simultaneous open. */
#include "oracle.h"

int main(void)
{
	int fd = bound(AF_INET, SOCK_STREAM), u = bound(AF_INET, SOCK_DGRAM);
	char b[16] = "";

	T(connect_port(fd, AF_INET, local_port(fd)));
	say("state %s, own peer %d", tcp_state(fd), local_port(fd) == peer_port(fd));
	T(write(fd, "echo", 4));
	T(read(fd, b, sizeof(b)));
	say("%s", b);
	T(shutdown(fd, SHUT_WR));
	T(read(fd, b, sizeof(b)));
	say("state %s polled %s", tcp_state(fd), polled(fd));
	T(connect_port(u, AF_INET, local_port(u)));
	T(send(u, "me", 2, 0));
	T(recv(u, b, sizeof(b), 0));
	say("%.2s", b);
	return 0;
}
