// SPDX-License-Identifier: GPL-2.0
/* IPv6 multicast on lo. */
#include "oracle.h"

static int u;
static int s;
static union address group;

static void send_one(const char *what)
{
	char b[64] = "";
	ssize_t n;

	if (sendto(s, what, strlen(what), 0, &group.sa, sizeof(group.in6)) < 0)
		say("%s: send %s", what, ename(errno));
	n = recv(u, b, sizeof(b), MSG_DONTWAIT);
	say("%s: %s", what, n < 0 ? ename(errno) : "arrived");
}

int main(void)
{
	struct ipv6_mreq m = { .ipv6mr_interface = 1 };
	union address any = address6("::", 0);

	s = must(socket(AF_INET6, SOCK_DGRAM, 0));
	u = must(socket(AF_INET6, SOCK_DGRAM, 0));
	must(bind(u, &any.sa, sizeof(any.in6)));
	group = address6("ff12::1234", local_port(u));
	m.ipv6mr_multiaddr = group.in6.sin6_addr;
	send_one("no interface");
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_IF, 1));
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_IF, 99));
	N(int_option(s, IPPROTO_IPV6, IPV6_MULTICAST_IF));
	send_one("not joined");
	T(setsockopt(u, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)));
	T(setsockopt(u, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)));
	send_one("joined");
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0));
	send_one("without loop");
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 1));
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 256));
	T(set_int(s, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 3));
	T(setsockopt(u, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &m, sizeof(m)));
	T(setsockopt(u, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &m, sizeof(m)));
	send_one("left");
	m.ipv6mr_multiaddr = in6addr_loopback;
	T(setsockopt(u, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)));
	m.ipv6mr_multiaddr = group.in6.sin6_addr;
	m.ipv6mr_interface = 99;
	T(setsockopt(u, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m)));
	return 0;
}
