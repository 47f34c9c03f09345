// SPDX-License-Identifier: GPL-2.0
/* Receiving nothing, too much, in pieces; zero-length calls. */
#include "oracle.h"

#define ADDR(family, port) ((struct sockaddr *)(union address[]){ loopback(family, port) })

int main(void)
{
	int p[2], u[2];
	char b[64] = "";

	tcp_pair(AF_INET, p);
	nonblocking(p[0]);
	T(read(p[0], b, 8));
	T(recv(p[0], b, 8, 0));
	T(recv(p[0], b, 0, 0));
	T(read(p[0], b, 0));
	T(write(p[1], "", 0));
	T(send(p[1], "", 0, 0));
	T(read(p[0], b, 8));
	T(write(p[1], "abcdef", 6));
	need(wait_for(p[0], POLLIN));
	T(read(p[0], b, 0));
	T(read(p[0], b, 2));
	T(read(p[0], b, 2));
	T(read(p[0], b, 20));
	T(recv(p[0], b, 8, 0x40000000));
	T(recv(p[0], b, 8, MSG_ERRQUEUE));

	udp_pair(AF_INET, u);
	T(send(u[0], "", 0, 0));
	say("polled %s", polled(u[1]));
	T(recv(u[1], b, 8, 0));
	T(recv(u[1], b, 8, MSG_DONTWAIT));
	T(write(u[0], "", 0));
	T(recv(u[1], b, 8, MSG_DONTWAIT));	/* write() of nothing: a datagram or not? */
	T(send(u[0], "abc", 3, 0));
	T(read(u[1], b, 0));
	T(recv(u[1], b, 8, MSG_DONTWAIT));
	T(send(u[0], "abc", 3, 0));
	T(recv(u[1], NULL, 0, 0));
	T(recv(u[1], b, 8, MSG_DONTWAIT));

	/* Not connected. */
	p[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	T(recv(p[0], b, 8, 0));
	T(read(p[0], b, 8));
	T(send(p[0], b, 8, MSG_NOSIGNAL));
	T(sendto(p[0], b, 8, MSG_NOSIGNAL, ADDR(AF_INET, 1), 16));
	u[0] = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(send(u[0], b, 8, 0));
	T(write(u[0], b, 8));
	T(sendto(u[0], b, 8, 0, ADDR(AF_INET, 0), 16));
	T(sendto(u[0], b, 8, 0, ADDR(AF_INET6, 9), 28));
	T(sendto(u[0], b, 8, 0, ADDR(AF_INET, 9), 8));
	T(sendto(u[0], b, 8, 0, ADDR(AF_INET, 9), 129));
	T(recv(u[0], b, 8, MSG_DONTWAIT));
	return 0;
}
