/* SPDX-License-Identifier: GPL-2.0 */
/* sockets.h - socket calls of the fuzzer: making, addressing, options, messages, ioctls */
#ifndef FUZZ_SOCKETS_H
#define FUZZ_SOCKETS_H

#include "netlink.h"
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The node's, also those that it does not know; not AF_UNIX, AF_ALG, AF_VSOCK: those are the host's. */
static const int families[] = {
	AF_INET, AF_INET, AF_INET, AF_INET6, AF_INET6, AF_PACKET, AF_PACKET, AF_NETLINK,
	AF_KEY, AF_RDS, AF_TIPC, AF_CAN, AF_SMC, AF_XDP, AF_KCM, AF_PHONET, AF_MPLS, AF_LLC,
	AF_APPLETALK, AF_AX25, AF_X25, AF_BLUETOOTH, AF_PPPOX, AF_QIPCRTR, AF_MCTP, AF_IEEE802154,
};

static void op_socket(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_STREAM, SOCK_DGRAM, SOCK_DGRAM, SOCK_RAW,
				     SOCK_SEQPACKET, SOCK_RDM, SOCK_DCCP, SOCK_PACKET };
	static const int inet[] = { 0, 0, 0, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6,
				    IPPROTO_SCTP, IPPROTO_UDPLITE, IPPROTO_RAW, IPPROTO_GRE,
				    115 /* L2TP */, IPPROTO_ESP, IPPROTO_MPTCP, 262, 255 };
	int family = PICK(families), type = PICK(types), protocol = PICK(inet);

	if (family == AF_PACKET)
		protocol = htons(one_in(2) ? 3 : 0x800);
	else if (family == AF_NETLINK)
		protocol = PICK(protocols).number;
	else if (family != AF_INET && family != AF_INET6)
		protocol = (int)below(8);
	if (one_in(50))
		protocol = (int)number();
	keep_fd(CALL3(SYS_socket, family,
		      type | (one_in(8) ? 0 : SOCK_NONBLOCK) | (one_in(4) ? SOCK_CLOEXEC : 0),
		      protocol));
}

/* Near ports: sockets shall find each other. */
static uint16_t port(void)
{
	return htons(one_in(8) ? (uint16_t)rnd() : 7000 + below(6));
}

static void *address(socklen_t *len)
{
	static const uint32_t hosts[] = { 0x7f000001, 0x7f000001, 0, 0x7f000002, 0xe0000001,
					  0xffffffff, 0x0a000001, 0xef010203 };
	struct sockaddr_storage *ss = work(sizeof(*ss));
	struct sockaddr_in *in = (void *)ss;
	struct sockaddr_in6 *in6 = (void *)ss;
	struct sockaddr_ll *ll = (void *)ss;
	struct sockaddr_nl *nl = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	switch (below(10)) {
	case 0: case 1: case 2: case 3:
		in->sin_family = AF_INET;
		in->sin_port = port();
		in->sin_addr.s_addr = htonl(PICK(hosts));
		*len = sizeof(*in);
		break;
	case 4: case 5:
		in6->sin6_family = AF_INET6;
		in6->sin6_port = port();
		in6->sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
		if (one_in(3))
			in6->sin6_addr.s6_addr32[2] = htonl(0xffff),
			in6->sin6_addr.s6_addr32[3] = htonl(PICK(hosts));
		in6->sin6_scope_id = below(4);
		*len = sizeof(*in6);
		break;
	case 6:
		ll->sll_family = AF_PACKET;
		ll->sll_protocol = htons(one_in(2) ? 3 : 0x800);
		ll->sll_ifindex = (int)below(4);
		ll->sll_halen = 6;
		*len = sizeof(*ll);
		break;
	case 7:
		nl->nl_family = AF_NETLINK;
		nl->nl_pid = one_in(2) ? 0 : below(40000);
		nl->nl_groups = one_in(2) ? 0 : rnd();
		*len = sizeof(*nl);
		break;
	case 8:
		ss->ss_family = AF_UNSPEC;
		*len = 16;
		break;
	default:
		fill(ss, sizeof(*ss));
		ss->ss_family = (sa_family_t)PICK(families);
		*len = below(sizeof(*ss) + 8);
	}
	if (one_in(20))
		*len = (socklen_t)number();
	return *len <= sizeof(*ss) && one_in(4) ? to_edge(ss, *len) : ss;
}

static void op_name(void)
{
	socklen_t len;
	void *a = address(&len);

	switch (below(4)) {
	case 0:
		CALL3(SYS_bind, any_fd(), maybe(a), len);
		break;
	case 1: case 2:
		CALL3(SYS_connect, any_fd(), maybe(a), len);
		break;
	default:
		CALL2(SYS_listen, any_fd(), one_in(4) ? number() : below(8));
	}
}

static void op_names(void)
{
	socklen_t *len = work(4);
	long nr[] = { SYS_getsockname, SYS_getpeername, SYS_accept, SYS_accept4, SYS_accept4 };
	long which = PICK(nr), ret;

	*len = one_in(4) ? (socklen_t)number() : 128;
	ret = CALL4(which, any_fd(), maybe(blob(128)), maybe(len), one_in(4) ? number() : SOCK_NONBLOCK);
	if (which == SYS_accept || which == SYS_accept4)
		keep_fd(ret);
}

static const int levels[] = {
	SOL_SOCKET, SOL_SOCKET, IPPROTO_IP, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_IPV6, IPPROTO_TCP,
	IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_RAW, 132 /* SCTP */, 263 /* PACKET */,
	263, 270 /* NETLINK */, 282 /* TLS */, 284 /* MPTCP */, 283 /* XDP */, 281 /* KCM */,
	136 /* UDPLITE */, 273 /* PPPOL2TP */, 271 /* TIPC */, 268 /* ATM..., none */,
};

/* What an option may want that is not just a number. */
static void *option_value(int level, int name, socklen_t *len)
{
	static const char * const texts[] = { "lo", "reno", "cubic", "tls", "smc", "espintcp", "mptcp", "" };
	struct sock_filter *code;
	struct sock_fprog *prog;
	uint32_t *ints;
	uint32_t i;

	if (level == SOL_SOCKET && (name == 26 || name == 51) && !one_in(4)) {
		prog = work(sizeof(*prog));
		prog->len = (unsigned short)(one_in(20) ? rnd() : 1 + below(8));
		code = blob(8 * sizeof(*code));
		for (i = 0; i < 8 && !one_in(4); i++)
			code[i].code &= 0xff;
		code[below(8)] = (struct sock_filter){ BPF_RET | BPF_K, 0, 0, 65535 };
		prog->filter = maybe(code);
		*len = sizeof(*prog);
		return prog;
	}
	switch (below(8)) {
	case 0:
		*len = below(8) ? below(256) : (socklen_t)number() & 0xffff;
		return blob(*len);
	case 1:
		*len = 16;
		return strncpy(blob(16), PICK(texts), 16);
	case 2:		/* groups, requests: an interface, then addresses */
		ints = blob(264);
		ints[0] = below(4);
		*len = (socklen_t[]){ 8, 12, 16, 20, 28, 132, 136, 264 }[below(8)];
		if (one_in(2))
			ints[0] = htonl(0xe0000000 + below(5));
		return ints;
	case 3:		/* a packet ring that is nearly right */
		ints = blob(28);
		ints[0] = 4096U << below(3);
		ints[1] = 1 + below(8);
		ints[2] = one_in(8) ? (uint32_t)number() : 2048U << below(2);
		ints[3] = ints[2] ? ints[0] / ints[2] * ints[1] : 0;
		ints[4] = below(100);
		ints[5] = 0;
		ints[6] = below(2);
		*len = one_in(2) ? 16 : 28;
		return ints;
	case 4:
		*len = 8;
		return blob(8);
	default:
		ints = work(4);
		*ints = one_in(2) ? below(4) : (uint32_t)number();
		*len = 4;
		return one_in(4) ? to_edge(ints, 4) : ints;
	}
}

static void op_option(void)
{
	int level = one_in(30) ? (int)below(300) : PICK(levels);
	int name = (int)(one_in(20) ? number() : level == 132 ? below(136) : below(90));
	socklen_t len;
	void *value;

	if (one_in(3)) {
		socklen_t *out = work(4);

		*out = one_in(4) ? (socklen_t)number() : below(300);
		CALL5(SYS_getsockopt, any_fd(), level, name, maybe(blob(300)), maybe(out));
		return;
	}
	value = option_value(level, name, &len);
	if (one_in(30))
		len = (socklen_t)number();
	CALL5(SYS_setsockopt, any_fd(), level, name, maybe(value), len);
}

static size_t control(uint8_t *to, size_t size)
{
	static const struct { int level, type; } known[] = {
		{ 0, 8 }, { 0, 1 }, { 0, 2 }, { 0, 7 }, { 41, 50 }, { 41, 52 }, { 41, 67 }, { 41, 59 },
		{ 41, 57 }, { 41, 54 }, { 1, 37 }, { 1, 61 }, { 1, 36 }, { 17, 103 }, { 132, 0 },
		{ 132, 1 }, { 132, 2 }, { 132, 3 }, { 132, 5 }, { 282, 1 }, { 1, 78 },
	};
	size_t used = 0;

	while (!one_in(3) && used + 80 < size) {
		struct cmsghdr *c = (struct cmsghdr *)(to + used);
		size_t len = (size_t[]){ 0, 1, 2, 4, 8, 12, 20, 24, 32, 48 }[below(10)];
		uint32_t i = below(ARRAY_SIZE(known));

		c->cmsg_level = one_in(12) ? (int)below(300) : known[i].level;
		c->cmsg_type = one_in(12) ? (int)below(130) : known[i].type;
		/* Descriptors are passed by AF_UNIX only, and that is the host's. */
		if (c->cmsg_level == 1 && c->cmsg_type <= 2)
			c->cmsg_level = 0;
		fill(CMSG_DATA(c), len);
		c->cmsg_len = one_in(16) ? number() : CMSG_LEN(len);
		used += CMSG_SPACE(len);
	}
	return used;
}

static size_t length(void)
{
	return one_in(16) ? number() : one_in(4) ? below(60000) : below(1600);
}

static struct msghdr *message(bool out)
{
	struct msghdr *m = work(sizeof(*m));
	uint32_t n = one_in(20) ? below(1100) : below(5), i;
	struct iovec *v = work(sizeof(*v) * (n + 1));
	socklen_t name_len;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < n && (char *)(v + i + 1) < arena + WORK; i++) {
		v[i].iov_len = one_in(40) ? number() : below(i < 4 ? 3000 : 16);
		v[i].iov_base = i < 4 ? maybe(blob(v[i].iov_len & 0xfff)) : v[0].iov_base;
	}
	m->msg_iov = maybe(v);
	m->msg_iovlen = one_in(40) ? number() : n;
	if (one_in(2)) {
		m->msg_name = maybe(address(&name_len));
		m->msg_namelen = name_len;
	}
	if (one_in(2)) {
		uint8_t *c = work(1024);

		m->msg_controllen = out ? control(c, 1024) : below(600);
		m->msg_control = maybe(c);
		if (one_in(30))
			m->msg_controllen = number();
	}
	return m;
}

static int msg_flags(void)
{
	static const int flags[] = { 0, 0, 0, MSG_DONTWAIT, MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_TRUNC,
				     MSG_MORE, MSG_WAITALL, MSG_ERRQUEUE, MSG_CONFIRM, MSG_ZEROCOPY,
				     MSG_FASTOPEN, 0x10, MSG_EOR };

	return (one_in(40) ? (int)number() : PICK(flags) | PICK(flags)) | (one_in(8) ? 0 : MSG_DONTWAIT);
}

static void op_send(void)
{
	size_t len = length();
	socklen_t alen = 0;
	void *a = NULL;
	struct mmsghdr *mm;
	uint32_t i, n;

	switch (below(3)) {
	case 0:
		if (one_in(2))
			a = address(&alen);
		CALL6(SYS_sendto, any_fd(), maybe(blob(len)), len, msg_flags() | MSG_NOSIGNAL, maybe(a), alen);
		break;
	case 1:
		CALL3(SYS_sendmsg, any_fd(), maybe(message(true)), msg_flags() | MSG_NOSIGNAL);
		break;
	default:
		n = below(6);
		mm = work(sizeof(*mm) * 6);
		for (i = 0; i < n; i++)
			mm[i].msg_hdr = *message(true);
		CALL4(SYS_sendmmsg, any_fd(), maybe(mm), one_in(20) ? number() : n, msg_flags() | MSG_NOSIGNAL);
	}
}

static void op_receive(void)
{
	size_t len = length();
	socklen_t *alen = work(4);
	struct timespec *ts;
	struct mmsghdr *mm;
	uint32_t i, n;

	*alen = one_in(4) ? (socklen_t)number() : 128;
	switch (below(3)) {
	case 0:
		CALL6(SYS_recvfrom, any_fd(), maybe(blob(len)), len & 0xffff, msg_flags(), maybe(blob(128)),
		      maybe(alen));
		break;
	case 1:
		CALL3(SYS_recvmsg, any_fd(), maybe(message(false)), msg_flags());
		break;
	default:
		n = below(6);
		mm = work(sizeof(*mm) * 6);
		ts = work(sizeof(*ts));
		*ts = (struct timespec){ 0, one_in(8) ? (long)number() : 1000000 };
		for (i = 0; i < n; i++)
			mm[i].msg_hdr = *message(false);
		CALL5(SYS_recvmmsg, any_fd(), maybe(mm), one_in(20) ? number() : n, msg_flags(), maybe(ts));
	}
}

static void op_netlink(void)
{
	const struct protocol *p = &PICK(protocols);
	struct sockaddr_nl nl = { .nl_family = AF_NETLINK };
	uint8_t *m = work(MESSAGE_MAX);
	long fd = CALL3(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, p->number);
	uint32_t turns = 1 + below(6);

	if (fd < 0)
		return;
	if (one_in(4))
		CALL3(SYS_bind, fd, memcpy(work(sizeof(nl)), &nl, sizeof(nl)), sizeof(nl));
	while (turns--) {
		size_t len = netlink_message(p, m);

		CALL6(SYS_sendto, fd, one_in(8) ? to_edge(m, len) : m, len, MSG_DONTWAIT, 0, 0);
		CALL6(SYS_recvfrom, fd, blob(16 * KIB), one_in(8) ? 0 : 16 * KIB, MSG_DONTWAIT, 0, 0);
	}
	if (one_in(4))
		keep_fd(fd);
	else
		CALL1(SYS_close, fd);
}

static void op_ioctl(void)
{
	static const unsigned long plain[] = { FIONREAD, FIONBIO, FIOASYNC, SIOCATMARK, SIOCOUTQ, SIOCINQ };
	struct ifreq *r = blob(256);
	unsigned long request = one_in(4) ? PICK(plain) : 0x8900 + below(0x100);

	if (one_in(20))
		request = 0x8900 | (unsigned long)rnd() << 16;
	/* The owner of its signals: only ourselves, they may be deadly. */
	if (request == FIOSETOWN || request == SIOCSPGRP) {
		*(int *)r = getpid();
	} else {
		memcpy(r->ifr_name, one_in(2) ? "lo\0\0\0\0\0" : "fz0\0\0\0\0", 8);
		if (one_in(2))
			r->ifr_ifindex = (int)below(4);
		if (one_in(2))
			r->ifr_data = maybe(blob(512));
	}
	CALL3(SYS_ioctl, any_fd(), request, maybe(r));
}

#endif
