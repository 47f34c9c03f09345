// SPDX-License-Identifier: GPL-2.0
/*
 * Datagrams of connected sockets, frame by frame, while what they depend on changes under
 * them: options, routes, neighbours, addresses, rules of the device. A node has a short way
 * for the plain ones (net.ring3.specialize), which must not show: each series is done with and
 * without it, and all are equal to the host's. That the short way is taken where it can be,
 * and only there, is counted on a node; on a host there is nothing to count.
 */
#include "rtnl.h"
#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <net/ethernet.h>
#include <net/if_arp.h>
#include <sys/uio.h>

#define RING3 "/proc/sys/net/ring3/"

static int counter = -1, toggle = -1;	/* of the first network: others have none */
static int tap;		/* what leaves va */
static int fd;
static bool special;
static int last_id;

/* Packets that went the short way since the last time. */
static long counted(void)
{
	static long before;
	char text[32] = "";
	long now, n;

	if (counter < 0)
		return -1;
	must(pread(counter, text, sizeof(text) - 1, 0));
	now = atol(text);
	n = now - before;
	before = now;
	return n;
}

static void hex(const unsigned char *p, int n)
{
	for (int i = 0; i < n; i++)
		printf("%02x", p[i]);
}

/* All frames that wait, but for what varies: the IP identification and both checksums. */
static void frames(void)
{
	static unsigned char b[70000];
	int n;

	while ((n = recv(tap, b, sizeof(b), MSG_DONTWAIT)) >= 0) {
		int id = b[18] << 8 | b[19];

		if (b[12] != 8 || b[13] || b[23] != IPPROTO_UDP)
			continue;
		printf("  %d bytes, id %s: ", n, last_id < 0 ? "of any kind" :
		       id == ((last_id + 1) & 0xffff) ? "next" : id == last_id ? "same" : "other");
		last_id = id;
		b[18] = b[19] = b[24] = b[25] = 0;
		if (!(b[20] & 0x1f) && !b[21])
			b[40] = b[41] = 0;
		hex(b, n < 60 ? n : 60);
		printf("\n");
	}
}

/* expr sends; `plain` of the packets may take the short way (-1: as it comes). */
#define SEND(plain, expr) do {							\
	long n_;								\
	counted();								\
	T(expr);								\
	n_ = counted();								\
	frames();								\
	if (n_ >= 0 && (plain) >= 0 && n_ != (special ? (plain) : 0))		\
		say("  %ld of %d took the short way", n_, plain);		\
} while (0)

/* Twice: many a change costs the socket its route, which the first packet looks up anew. */
static void one(const char *what, int plain)
{
	say("%s:", what);
	SEND(-1, send(fd, "first", 5, 0));
	SEND(plain, send(fd, "datagram", 8, 0));
}

/* Until packets leave: a device that went up gets its queue some time later. */
static void settle(void)
{
	unsigned char b[100];
	int i, n = 0;

	for (i = 0; i < 500 && n <= 0; i++) {
		must(send(fd, "settle", 6, 0));
		while (recv(tap, b, sizeof(b), MSG_DONTWAIT) >= 0)
			n += b[12] == 8 && !b[13];
		if (!n)
			sleep_ms(10);
	}
	last_id = -1;
}

static void options(void)
{
	static const struct { int level, name, value, back; const char *what; bool plain; } set[] = {
		{ IPPROTO_IP, IP_TOS, 0x48, 0, "TOS", true },
		{ IPPROTO_IP, IP_TTL, 7, -1, "TTL", true },
		{ SOL_SOCKET, SO_PRIORITY, 5, 0, "priority", true },
		{ SOL_SOCKET, SO_MARK, 77, 0, "mark", true },
		{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_PMTUDISC_WANT, "DF", true },
		{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT, IP_PMTUDISC_WANT, "no DF", false },
		{ IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE, IP_PMTUDISC_WANT, "probe", false },
		{ SOL_SOCKET, SO_NO_CHECK, 1, 0, "no checksum", false },
		{ SOL_SOCKET, SO_DONTROUTE, 1, 0, "not routed", false },
		{ IPPROTO_UDP, UDP_SEGMENT, 3, 0, "segments of 3", false },
		{ SOL_SOCKET, SO_TIMESTAMP, 1, 0, "timestamps of what comes", true },
	};
	static const unsigned char nop[4] = { 1, 1, 1, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(set); i++) {
		T(set_int(fd, set[i].level, set[i].name, set[i].value));
		one(set[i].what, set[i].plain);
		T(set_int(fd, set[i].level, set[i].name, set[i].back));
	}
	one("as before", 1);
	T(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nop, sizeof(nop)));
	one("IP options", 0);
	T(setsockopt(fd, IPPROTO_IP, IP_OPTIONS, nop, 0));
	one("an empty list of IP options", 0);
}

static void calls(const union address *to)
{
	static char big[9000];
	char cbuf[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec v[3] = { { "da", 2 }, { "", 0 }, { "tagram", 6 } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 3 };
	struct mmsghdr mm[3] = { { .msg_hdr = m }, { .msg_hdr = m }, { .msg_hdr = m } };
	struct cmsghdr *c;
	void *bad = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(munmap((char *)bad + 4096, 4096));
	SEND(1, send(fd, "", 0, 0));
	SEND(1, send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
	SEND(1, write(fd, "odd", 3));
	SEND(1, sendmsg(fd, &m, 0));
	SEND(3, sendmmsg(fd, mm, 3, 0));
	SEND(0, sendto(fd, "named", 5, 0, &to->sa, sizeof(to->in)));
	SEND(0, send(fd, "confirm", 7, MSG_CONFIRM));
	SEND(0, send(fd, "dontroute", 9, MSG_DONTROUTE));
	SEND(0, send(fd, "oob", 3, MSG_OOB));
	SEND(0, send(fd, "part", 4, MSG_MORE));
	SEND(0, send(fd, "whole", 5, 0));
	SEND(1, send(fd, "after", 5, 0));
	m.msg_control = cbuf;
	m.msg_controllen = sizeof(cbuf);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_TTL;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	*(int *)CMSG_DATA(c) = 3;
	SEND(0, sendmsg(fd, &m, 0));
	SEND(1, send(fd, big, 1472, 0));
	SEND(0, send(fd, big, 1473, 0));
	SEND(0, send(fd, big, 9000, 0));
	SEND(0, send(fd, big, 65508, 0));
	SEND(0, send(fd, (char *)bad + 4000, 97, 0));
	SEND(0, send(fd, (char *)8, 97, 0));
	SEND(1, send(fd, (char *)bad + 4000, 96, 0));
}

static int neighbour(const char *address, const unsigned char *mac, int state)
{
	struct ndmsg nd = {
		.ndm_family = AF_INET, .ndm_ifindex = if_nametoindex("va"), .ndm_state = state,
	};
	struct in_addr a;
	struct rtnl r;

	rtnl_start(&r, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, &nd, sizeof(nd));
	must(inet_pton(AF_INET, address, &a));
	rtnl_put(&r, NDA_DST, &a, 4);
	rtnl_put(&r, NDA_LLADDR, mac, 6);
	return rtnl_talk(&r);
}

static int route(int type, const char *to, const char *via, int kind, int mtu)
{
	struct rtmsg rt = {
		.rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = RT_TABLE_MAIN,
		.rtm_protocol = RTPROT_STATIC, .rtm_type = kind,
		.rtm_scope = type == RTM_DELROUTE ? RT_SCOPE_NOWHERE : RT_SCOPE_UNIVERSE,
	};
	struct rtattr *nest;
	struct in_addr a;
	struct rtnl r;

	rtnl_start(&r, type, NLM_F_CREATE | NLM_F_REPLACE, &rt, sizeof(rt));
	must(inet_pton(AF_INET, to, &a));
	rtnl_put(&r, RTA_DST, &a, 4);
	if (via) {
		must(inet_pton(AF_INET, via, &a));
		rtnl_put(&r, RTA_GATEWAY, &a, 4);
	}
	if (mtu) {
		nest = rtnl_put(&r, RTA_METRICS, NULL, 0);
		rtnl_put(&r, RTAX_MTU, &mtu, 4);
		rtnl_close(&r, nest);
	}
	return rtnl_talk(&r);
}

static int set_mtu(const char *name, int mtu)
{
	struct ifreq ifr = { .ifr_mtu = mtu };
	int s = must(socket(AF_INET, SOCK_DGRAM, 0)), ret;

	strcpy(ifr.ifr_name, name);
	ret = ioctl(s, SIOCSIFMTU, &ifr);
	close(s);
	return ret;
}

static int set_flags(const char *name, int flags)
{
	struct ifinfomsg link = {
		.ifi_family = AF_UNSPEC, .ifi_index = if_nametoindex(name),
		.ifi_flags = flags, .ifi_change = IFF_UP,
	};
	struct rtnl r;

	rtnl_start(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	return rtnl_talk(&r);
}

static int queue(const char *kind, int type)
{
	struct tcmsg tc = {
		.tcm_family = AF_UNSPEC, .tcm_ifindex = if_nametoindex("va"), .tcm_parent = TC_H_ROOT,
	};
	struct rtnl r;

	rtnl_start(&r, type, type == RTM_NEWQDISC ? NLM_F_CREATE | NLM_F_REPLACE : 0, &tc, sizeof(tc));
	rtnl_put(&r, TCA_KIND, kind, strlen(kind) + 1);
	return rtnl_talk(&r);
}

static void write_sysctl(const char *path, const char *text)
{
	int f = must(open(path, O_WRONLY));

	must(write(f, text, strlen(text)));
	close(f);
}

static void surroundings(const unsigned char *mac)
{
	static const unsigned char other[6] = { 2, 0, 0, 0, 0, 9 };
	union address to = address4("10.9.8.3", 7000);

	T(neighbour("10.9.8.2", other, NUD_PERMANENT));
	one("another hardware address", 1);
	T(neighbour("10.9.8.2", mac, NUD_STALE));
	one("a stale neighbour", 0);
	T(neighbour("10.9.8.2", mac, NUD_PERMANENT));
	one("a good neighbour", 1);

	T(neighbour("10.9.8.9", other, NUD_PERMANENT));
	T(route(RTM_NEWROUTE, "10.9.8.2", "10.9.8.9", RTN_UNICAST, 0));
	one("by a gateway", 1);
	T(route(RTM_NEWROUTE, "10.9.8.2", NULL, RTN_BLACKHOLE, 0));
	one("a black hole", 0);
	T(route(RTM_NEWROUTE, "10.9.8.2", "10.9.8.9", RTN_UNICAST, 600));
	one("a route with an MTU", 0);
	T(route(RTM_DELROUTE, "10.9.8.2", NULL, RTN_UNICAST, 0));
	one("direct again", 1);

	T(set_mtu("va", 100));
	SEND(0, send(fd, "0123456789012345678901234567890123456789012345678901234567890123456789012", 73, 0));
	SEND(1, send(fd, "012345678901234567890123456789012345678901234567890123456789012345678901", 72, 0));
	T(set_mtu("va", 1500));
	one("MTU as before", 1);

	write_sysctl("/proc/sys/net/ipv4/ip_default_ttl", "33");
	one("another TTL for all", 1);
	write_sysctl("/proc/sys/net/ipv4/ip_default_ttl", "64");

	T(queue("pfifo_fast", RTM_NEWQDISC));
	one("a queue", 1);
	T(queue("pfifo", RTM_NEWQDISC));
	one("another queue", 1);
	T(queue("pfifo", RTM_DELQDISC));
	one("no queue", 1);

	T(set_flags("va", 0));
	one("down", -1);
	T(set_flags("va", IFF_UP));
	T(neighbour("10.9.8.2", mac, NUD_PERMANENT));
	T(neighbour("10.9.8.3", mac, NUD_PERMANENT));
	settle();
	one("up", 1);

	T(connect(fd, &to.sa, sizeof(to.in)));
	one("to another", 1);
	to.in.sin_port = htons(7001);
	T(connect(fd, &to.sa, sizeof(to.in)));
	one("to another port", 1);
	T(shutdown(fd, SHUT_WR));
	one("shut", 0);
	to.sa.sa_family = AF_UNSPEC;
	T(connect(fd, &to.sa, sizeof(to.in)));
	one("connected to none", 0);
}

/* A rule gives packets another way, whose MTU is smaller: there they are cut, unless the socket forbids it. */
static void rerouted(void)
{
	static const char long_one[1000];

	T(system("ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 mtu 600 up && "
		 "ip route add default dev d0 table 7 && ip rule add fwmark 1 table 7 && "
		 "nft 'add table ip m; add chain ip m o { type route hook output priority mangle; }; "
		 "add rule ip m o udp dport 7000 meta mark set 1'"));
	/* The first one finds its route anew. */
	SEND(-1, send(fd, long_one, sizeof(long_one), 0));
	SEND(0, send(fd, long_one, sizeof(long_one), 0));
	T(set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO));
	SEND(-1, send(fd, long_one, sizeof(long_one), 0));
	T(set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_WANT));
	T(system("nft delete table ip m && ip rule del fwmark 1 && ip link del d0"));
	last_id = -1;
	one("direct once more", 1);
}

/* A socket of the other family that becomes one of this. */
static void became_v4(const unsigned char *mac)
{
	union address to = address6("::ffff:10.9.8.2", 7000), from = address6("::ffff:10.9.8.1", 6001);
	int v6 = must(socket(AF_INET6, SOCK_DGRAM, 0)), kept = fd;

	T(neighbour("10.9.8.2", mac, NUD_PERMANENT));
	T(bind(v6, &from.sa, sizeof(from.in6)));
	T(connect(v6, &to.sa, sizeof(to.in6)));
	fd = v6;
	last_id = -1;
	one("IPv4 of an IPv6 socket", 0);
	T(set_int(v6, IPPROTO_IPV6, IPV6_ADDRFORM, AF_INET));
	one("an IPv6 socket no more", 1);
	fd = kept;
	close(v6);
}

static void open_socket(const union address *from, const union address *to)
{
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(fd, &from->sa, sizeof(from->in)));
	must(connect(fd, &to->sa, sizeof(to->in)));
}

static void series(bool on)
{
	union address to = address4("10.9.8.2", 7000), from = address4("10.9.8.1", 6000);
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	static const unsigned char mac_a[6] = { 2, 0, 0, 0, 0, 1 }, mac_b[6] = { 2, 0, 0, 0, 0, 2 };
	struct ifreq ifr = { .ifr_hwaddr.sa_family = ARPHRD_ETHER };
	int s;

	special = on;
	last_id = -1;
	if (counter >= 0)
		must(pwrite(toggle, on ? "1" : "0", 1, 0));
	must(unshare(CLONE_NEWNET));
	must(rtnl_veth("va", "vb", 0, 0));
	s = must(socket(AF_INET, SOCK_DGRAM, 0));
	strcpy(ifr.ifr_name, "va");
	memcpy(ifr.ifr_hwaddr.sa_data, mac_a, 6);
	must(ioctl(s, SIOCSIFHWADDR, &ifr));
	strcpy(ifr.ifr_name, "vb");
	memcpy(ifr.ifr_hwaddr.sa_data, mac_b, 6);
	must(ioctl(s, SIOCSIFHWADDR, &ifr));
	close(s);
	must(rtnl_up("va", "10.9.8.1"));
	must(rtnl_up("vb", NULL));
	must(neighbour("10.9.8.2", mac_b, NUD_PERMANENT));
	tap = must(socket(AF_PACKET, SOCK_RAW, 0));
	ll.sll_ifindex = if_nametoindex("va");
	must(bind(tap, (struct sockaddr *)&ll, sizeof(ll)));

	open_socket(&from, &to);
	settle();
	one("plain", 1);
	options();
	close(fd);
	open_socket(&from, &to);
	last_id = -1;
	calls(&to);
	rerouted();
	surroundings(mac_b);
	became_v4(mac_b);
	close(fd);
	close(tap);
}

int main(void)
{
	counter = open(RING3 "specialized", O_RDONLY);
	if (counter >= 0)
		toggle = must(open(RING3 "specialize", O_WRONLY));
	series(true);
	series(false);
	series(true);
	return 0;
}
