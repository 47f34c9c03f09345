// SPDX-License-Identifier: GPL-2.0
/* IP_MTU and IP_MTU_DISCOVER on loopback. */
#include "oracle.h"

int main(void)
{
	static char big[65507];
	int u[2], fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	N(int_option(fd, IPPROTO_IP, IP_MTU));
	udp_pair(AF_INET, u);
	N(int_option(u[0], IPPROTO_IP, IP_MTU));
	for (int mode = -1; mode < 7; mode++) {
		must(set_int(u[0], IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT));
		say("mode %d: %s", mode, set_int(u[0], IPPROTO_IP, IP_MTU_DISCOVER, mode) ? ename(errno) : "ok");
		T(send(u[0], big, 65507, 0));
		T(recv(u[1], big, 65507, MSG_DONTWAIT));
	}
	udp_pair(AF_INET6, u);
	N(int_option(u[0], IPPROTO_IPV6, IPV6_MTU));
	T(send(u[0], big, 65507, 0));
	T(set_int(u[0], IPPROTO_IPV6, IPV6_DONTFRAG, 1));
	T(send(u[0], big, 65507, 0));
	T(set_int(u[0], IPPROTO_IPV6, IPV6_MTU, 1280));
	T(send(u[0], big, 1300, 0));
	return 0;
}
