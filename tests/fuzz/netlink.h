/* SPDX-License-Identifier: GPL-2.0 */
/*
 * netlink.h - messages that are nearly right: types of the protocol, its fixed header, then a
 * tree of attributes with plausible kinds and lengths, some of them wrong
 */
#ifndef FUZZ_NETLINK_H
#define FUZZ_NETLINK_H

#include <linux/netlink.h>
#include "args.h"

#define MESSAGE_MAX	(8 * KIB)

struct builder {
	uint8_t *base;
	size_t used, size;
};

static void put(struct builder *b, const void *data, size_t len)
{
	if (b->used + len > b->size)
		return;
	memcpy(b->base + b->used, data, len);
	b->used += len;
	while (b->used % 4 && b->used < b->size)
		b->base[b->used++] = 0;
}

static const char *word(void)
{
	static const char * const words[] = {
		"lo", "dummy", "veth", "bridge", "vlan", "vxlan", "gre", "gretap", "ip6gre", "ipip",
		"sit", "ip6tnl", "bond", "team", "macvlan", "macvtap", "ipvlan", "ifb", "tun",
		"wireguard", "geneve", "vti", "vti6", "vrf", "xfrm", "nlmon", "netdevsim", "hsr",
		"fz0", "fz1", "fz2", "fq", "fq_codel", "pfifo", "bfifo", "tbf", "netem", "htb",
		"hfsc", "drr", "prio", "sfq", "red", "cake", "mqprio", "noqueue", "ingress",
		"clsact", "u32", "flower", "bpf", "basic", "matchall", "mirred", "gact", "pedit",
		"police", "skbedit", "vlan", "csum", "nat", "filter", "input", "output", "prerouting",
		"ip", "ip6", "inet", "arp", "netdev", "route", "t0", "c0", "s0", "payload", "meta",
		"cmp", "bitwise", "immediate", "lookup", "ct", "log", "limit", "counter", "masq",
		"redir", "reject", "queue", "notrack", "dynset", "hash", "exthdr", "range", "objref",
		"tproxy", "socket", "fib", "tunnel", "synproxy", "flow_offload", "quota", "connlimit",
		"bbr", "cubic", "reno", "dctcp", "sha256", "hmac(sha256)", "cbc(aes)", "rfc4106(gcm(aes))",
		"nlctrl", "ethtool", "mptcp_pm", "tcp_metrics", "netdev", "handshake", "SEG6", "ila",
	};

	return PICK(words);
}

static void attributes(struct builder *b, int depth)
{
	uint32_t n = below(7), i;

	for (i = 0; i < n && b->used + 64 < b->size; i++) {
		size_t start = b->used;
		struct nlattr *attr = (struct nlattr *)(b->base + start);
		uint16_t type = (uint16_t)(one_in(8) ? rnd() : below(48));
		uint8_t bytes[64];
		uint64_t value;

		put(b, &(struct nlattr){ 0 }, sizeof(*attr));
		switch (below(depth < 4 ? 9 : 7)) {
		case 0: case 1: {
			const char *w = word();

			put(b, w, strlen(w) + 1);
			break;
		}
		case 2: case 3:
			value = one_in(2) ? below(8) : number();
			put(b, &value, 4);
			break;
		case 4:
			value = number();
			put(b, &value, 1U << below(4));
			break;
		case 5:
			fill(bytes, sizeof(bytes));
			put(b, bytes, below(sizeof(bytes)));
			break;
		case 6:		/* an address */
			value = one_in(2) ? 0x0100007f : number();
			put(b, &value, one_in(2) ? 4 : 6);
			break;
		default:
			type |= one_in(3) ? 0 : NLA_F_NESTED;
			attributes(b, depth + 1);
		}
		if (one_in(16))
			type |= NLA_F_NET_BYTEORDER;
		attr->nla_type = type;
		attr->nla_len = (uint16_t)(one_in(64) ? rnd() : b->used - start);
	}
}

struct protocol {
	int number;		/* NETLINK_* */
	uint16_t first, last;	/* message types */
	uint8_t head;		/* bytes of the fixed header at most */
};

static const struct protocol protocols[] = {
	{ NETLINK_ROUTE, 16, 23, 16 },		/* links, addresses */
	{ NETLINK_ROUTE, 16, 19, 16 },
	{ NETLINK_ROUTE, 24, 35, 12 },		/* routes, neighbours, rules */
	{ NETLINK_ROUTE, 36, 47, 20 },		/* traffic control */
	{ NETLINK_ROUTE, 48, 122, 16 },
	{ NETLINK_SOCK_DIAG, 18, 22, 56 },
	{ NETLINK_XFRM, 16, 41, 0 },		/* header: anything, see below */
	{ NETLINK_NETFILTER, 0, 0, 4 },
	{ NETLINK_NETFILTER, 0, 0, 4 },
	{ NETLINK_GENERIC, 16, 48, 4 },
	{ NETLINK_FIB_LOOKUP, 0, 20, 48 },
	{ NETLINK_CRYPTO, 16, 24, 160 },
	{ NETLINK_AUDIT, 1000, 1030, 16 },
	{ NETLINK_CONNECTOR, 0, 20, 20 },
	{ NETLINK_KOBJECT_UEVENT, 0, 40, 16 },
};

static void fixed_header(struct builder *b, const struct protocol *p, uint16_t *type)
{
	static const uint8_t families[] = { 0, 2, 10, 7, 17, 1, 5, 3, 128, 129 };
	uint8_t head[512];
	size_t len = p->head;

	memset(head, 0, sizeof(head));
	if (p->number == NETLINK_NETFILTER) {
		*type = (uint16_t)(below(14) << 8 | below(28));
		head[0] = PICK(families);
		head[3] = (uint8_t)below(12);	/* res_id, for batches the subsystem */
	} else if (p->number == NETLINK_GENERIC) {
		head[0] = (uint8_t)below(24);
		head[1] = (uint8_t)below(4);
	} else if (p->number == NETLINK_XFRM) {
		len = (size_t[]){ 224, 168, 280, 64, 24, 0, 4, 40 }[below(8)];
		fill(head, len);
	} else {
		uint32_t i;

		if (one_in(3))
			fill(head, len);
		head[0] = PICK(families);
		/* Index, mask and so on: small words. */
		for (i = 4; i + 4 <= len; i += 4)
			if (one_in(2))
				memcpy(head + i, &(uint32_t){ one_in(3) ? number() : below(6) }, 4);
	}
	if (one_in(40))
		len = below(sizeof(head));
	put(b, head, len);
}

/* One or more messages for a socket of that protocol, as they go over it. */
static size_t netlink_message(const struct protocol *p, uint8_t *to)
{
	struct builder b = { to, 0, MESSAGE_MAX };
	uint32_t n = one_in(4) ? 1 + below(4) : 1, i;
	bool batch = p->number == NETLINK_NETFILTER && !one_in(4);
	struct nlmsghdr edge = { 20, 16, 1, 0, 0 };

	if (batch) {
		put(&b, &edge, 16);
		put(&b, (uint8_t[]){ 0, 0, 0, 10 }, 4);	/* NFNL_SUBSYS_NFTABLES */
		n++;
	}
	for (i = 0; i < n; i++) {
		size_t start = b.used;
		struct nlmsghdr *h = (struct nlmsghdr *)(to + start);
		uint16_t type = (uint16_t)(p->first + below(p->last - p->first + 1U));

		put(&b, &(struct nlmsghdr){ 0 }, sizeof(*h));
		fixed_header(&b, p, &type);
		if (batch)
			type = (uint16_t)(10 << 8 | below(28));
		attributes(&b, 0);
		if (one_in(32))
			type = (uint16_t)rnd();
		*h = (struct nlmsghdr){
			.nlmsg_len = one_in(64) ? rnd() >> below(32) : b.used - start,
			.nlmsg_type = type,
			.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | (one_in(2) ? NLM_F_ACK : 0) |
						  (one_in(2) ? below(16) << 8 : 0) |
						  (one_in(16) ? rnd() : 0)),
			.nlmsg_seq = below(100),
		};
	}
	if (batch) {
		edge.nlmsg_type = 17;
		put(&b, &edge, 16);
		put(&b, (uint8_t[]){ 0, 0, 0, 10 }, 4);
	}
	return b.used;
}

#endif
