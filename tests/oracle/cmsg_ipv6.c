// SPDX-License-Identifier: GPL-2.0
/* Ancillary data of IPv6: PKTINFO, HOPLIMIT, TCLASS, and both on mapped addresses. */
#include "cmsg.h"

static void send_with(int fd, int level, int type, int value)
{
	struct message m;
	size_t used = 0;

	fresh(&m);
	m.header.msg_name = NULL;
	m.header.msg_namelen = 0;
	m.iov.iov_len = 3;
	add_cmsg(&m, &used, level, type, &value, 4);
	T(sendmsg(fd, &m.header, 0));
}

int main(void)
{
	int u[2], w, c;
	union address any = address6("::", 0);

	udp_pair(AF_INET6, u);
	must(set_int(u[1], IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
	must(set_int(u[1], IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1));
	must(set_int(u[1], IPPROTO_IPV6, IPV6_RECVTCLASS, 1));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);
	must(set_int(u[0], IPPROTO_IPV6, IPV6_TCLASS, 0x28));
	must(set_int(u[0], IPPROTO_IPV6, IPV6_UNICAST_HOPS, 3));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);
	send_with(u[0], IPPROTO_IPV6, IPV6_HOPLIMIT, 9);
	receive(u[1], MSG_DONTWAIT);
	send_with(u[0], IPPROTO_IPV6, IPV6_TCLASS, 0x40);
	receive(u[1], MSG_DONTWAIT);
	send_with(u[0], IPPROTO_IPV6, IPV6_HOPLIMIT, 300);
	send_with(u[0], IPPROTO_IPV6, IPV6_DONTFRAG, 1);
	receive(u[1], MSG_DONTWAIT);
	send_with(u[0], IPPROTO_IPV6, 999, 1);

	/* A dual-stack socket that an IPv4 peer talks to. */
	w = must(socket(AF_INET6, SOCK_DGRAM, 0));
	must(bind(w, &any.sa, sizeof(any.in6)));
	must(set_int(w, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
	must(set_int(w, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1));
	T(set_int(w, IPPROTO_IP, IP_PKTINFO, 1));
	T(set_int(w, IPPROTO_IP, IP_RECVTTL, 1));
	c = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(connect_port(c, AF_INET, local_port(w)));
	must(send(c, "abc", 3, 0));
	receive(w, 0);
	return 0;
}
