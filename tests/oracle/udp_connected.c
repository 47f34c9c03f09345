// SPDX-License-Identifier: GPL-2.0
/* A connected UDP socket hears its peer alone; sendto() with an address still works. */
#include "oracle.h"

int main(void)
{
	int a = bound(AF_INET, SOCK_DGRAM), b = bound(AF_INET, SOCK_DGRAM), c = bound(AF_INET, SOCK_DGRAM);
	union address to_a = loopback(AF_INET, local_port(a)), to_c = loopback(AF_INET, local_port(c)), from;
	socklen_t len = sizeof(from);
	char buf[16] = "";

	must(connect_port(a, AF_INET, local_port(b)));
	must(sendto(c, "stranger", 8, 0, &to_a.sa, 16));
	must(sendto(b, "friend", 6, 0, &to_a.sa, 16));
	T(recvfrom(a, buf, 16, MSG_DONTWAIT, &from.sa, &len));
	say("%s from the friend %d len %d", buf, from.in.sin_port == htons(local_port(b)), len);
	T(recv(a, buf, 16, MSG_DONTWAIT));
	T(sendto(a, "elsewhere", 9, 0, &to_c.sa, 16));
	T(recv(c, buf, 16, MSG_DONTWAIT));
	T(send(a, "home", 4, 0));
	T(recv(b, buf, 16, MSG_DONTWAIT));
	T(send(b, "unconnected", 11, 0));
	/* A datagram that arrived before connect() stays. */
	must(sendto(b, "early", 5, 0, &to_c.sa, 16));
	must(connect_port(c, AF_INET, local_port(a)));
	T(recv(c, buf, 16, MSG_DONTWAIT));
	/* Order, and a zero address length. */
	len = 0;
	must(send(a, "1", 1, 0));
	must(send(a, "2", 1, 0));
	T(recvfrom(b, buf, 16, 0, &from.sa, &len));
	N(len);
	T(recvfrom(b, buf + 1, 15, 0, NULL, NULL));
	say("%.2s", buf);
	return 0;
}
