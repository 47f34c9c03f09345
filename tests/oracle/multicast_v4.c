// SPDX-License-Identifier: GPL-2.0
/* IPv4 multicast on lo: joining, sending, looping back, leaving, sources. */
#include "oracle.h"

static int u;
static int s;
static union address group;

static void send_one(const char *what)
{
	char b[32] = "";
	ssize_t n;

	if (sendto(s, what, strlen(what), 0, &group.sa, sizeof(group.in)) < 0)
		say("%s: send %s", what, ename(errno));
	n = recv(u, b, sizeof(b), MSG_DONTWAIT);
	say("%s: %s", what, n < 0 ? ename(errno) : "arrived");
}

int main(void)
{
	struct ip_mreqn m = { .imr_ifindex = 1 };
	struct ip_mreq_source src = { };
	union address any = address4("0.0.0.0", 0);
	struct in_addr interface;
	socklen_t len = sizeof(interface);
	struct ip_mreqn bad;

	s = must(socket(AF_INET, SOCK_DGRAM, 0));
	u = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(u, &any.sa, sizeof(any.in)));
	group = address4("239.1.2.3", local_port(u));
	m.imr_multiaddr = group.in.sin_addr;
	send_one("no route, no interface");
	T(setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &(struct ip_mreqn){ .imr_ifindex = 1 }, sizeof(m)));
	T(getsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &interface, &len));
	say("len %d %s", len, inet_ntoa(interface));
	send_one("not joined");
	T(setsockopt(u, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)));
	T(setsockopt(u, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m)));
	send_one("joined");
	N(int_option(s, IPPROTO_IP, IP_MULTICAST_LOOP));
	N(int_option(s, IPPROTO_IP, IP_MULTICAST_TTL));
	T(set_int(s, IPPROTO_IP, IP_MULTICAST_TTL, 5));
	T(set_int(s, IPPROTO_IP, IP_MULTICAST_TTL, 256));
	T(set_int(s, IPPROTO_IP, IP_MULTICAST_TTL, -1));
	N(int_option(s, IPPROTO_IP, IP_MULTICAST_TTL));
	send_one("ttl 1");
	T(setsockopt(u, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof(m)));
	T(setsockopt(u, IPPROTO_IP, IP_DROP_MEMBERSHIP, &m, sizeof(m)));
	send_one("left");

	src.imr_multiaddr = group.in.sin_addr;
	src.imr_interface.s_addr = htonl(INADDR_LOOPBACK);
	src.imr_sourceaddr.s_addr = htonl(INADDR_LOOPBACK + 4);
	T(setsockopt(u, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &src, sizeof(src)));
	send_one("another source");
	src.imr_sourceaddr.s_addr = htonl(INADDR_LOOPBACK);
	T(setsockopt(u, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &src, sizeof(src)));
	send_one("the right source");
	T(setsockopt(u, IPPROTO_IP, IP_BLOCK_SOURCE, &src, sizeof(src)));
	T(setsockopt(u, IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP, &src, sizeof(src)));
	send_one("source dropped");

	bad = m;
	bad.imr_multiaddr.s_addr = htonl(INADDR_LOOPBACK);
	T(setsockopt(u, IPPROTO_IP, IP_ADD_MEMBERSHIP, &bad, sizeof(bad)));
	bad = m;
	bad.imr_ifindex = 99;
	T(setsockopt(u, IPPROTO_IP, IP_ADD_MEMBERSHIP, &bad, sizeof(bad)));
	bad = m;
	bad.imr_ifindex = 0;
	T(setsockopt(u, IPPROTO_IP, IP_ADD_MEMBERSHIP, &bad, sizeof(bad)));

	/* Broadcast belongs here too. */
	group = address4("127.255.255.255", local_port(u));
	send_one("broadcast without the option");
	must(set_int(s, SOL_SOCKET, SO_BROADCAST, 1));
	send_one("broadcast");
	return 0;
}
