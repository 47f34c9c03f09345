// SPDX-License-Identifier: GPL-2.0
/*
 * frames.c - what a node whose kernel is a hostile program's sends to its gateway
 *
 *   frames FROM TO      two IPv4 addresses: the sandbox's own, and the one host that the policy lets it reach (TCP port 80 only)
 *
 * Each frame is sent twice: by a packet socket, and by writing the link's ring directly, as a driver of the attacker's own would,
 * with a virtio_net_hdr of its choice. Then the ring gets records, counters and headers at random. Prints "sent COUNT" and
 * "ring COUNT".
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ring3.h"
#include "ring3_space.h"

static uint8_t own_mac[6], gateway_mac[6], frame[2048];
static uint32_t own, target;
static size_t length;
static int packets;
static long sent, rung;
static struct ring3_link *link_memory;
static unsigned int side;
static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t chance(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed >> 16;
}

static void put16(size_t at, uint16_t value) { frame[at] = value >> 8; frame[at + 1] = value; }
static void put32(size_t at, uint32_t value) { memcpy(frame + at, &value, 4); }	/* in network order already */

static uint32_t sum(const uint8_t *bytes, size_t len, uint32_t start)
{
	for (size_t i = 0; i < len; i++)
		start += i % 2 ? bytes[i] : bytes[i] << 8;
	return start;
}

static uint16_t fold(uint32_t value)
{
	while (value >> 16)
		value = (value & 0xffff) + (value >> 16);
	return ~value;
}

static void ethernet(uint16_t type)
{
	memset(frame, 0, sizeof(frame));
	memcpy(frame, gateway_mac, 6);
	memcpy(frame + 6, own_mac, 6);
	put16(12, type);
	length = 14;
}

/* An IPv4 header behind what is there; `fragment` is the field of flags and offset. */
static size_t ipv4(uint32_t from, uint32_t to, uint8_t protocol, uint16_t fragment, size_t payload)
{
	size_t at = length;

	frame[at] = 0x45;
	put16(at + 2, 20 + payload);
	put16(at + 4, 0x7777);
	put16(at + 6, fragment);
	frame[at + 8] = 64;
	frame[at + 9] = protocol;
	put32(at + 12, from);
	put32(at + 16, to);
	put16(at + 10, fold(sum(frame + at, 20, 0)));
	length = at + 20 + payload;
	return at + 20;
}

static void checksum(size_t ip, size_t at, size_t field, uint8_t protocol)
{
	uint32_t pseudo = sum(frame + ip + 12, 8, protocol + (length - at));

	put16(at + field, fold(sum(frame + at, length - at, pseudo)));
}

static void tcp(uint32_t from, uint32_t to, uint16_t port, uint8_t flags)
{
	size_t at;

	ethernet(ETH_P_IP);
	at = ipv4(from, to, IPPROTO_TCP, 0, 20);
	put16(at, 40000 + sent % 1000);
	put16(at + 2, port);
	frame[at + 12] = 5 << 4;
	frame[at + 13] = flags;
	put16(at + 14, 65535);
	checksum(14, at, 16, IPPROTO_TCP);
}

static void udp(uint32_t from, uint32_t to, uint16_t port)
{
	size_t at;

	ethernet(ETH_P_IP);
	at = ipv4(from, to, IPPROTO_UDP, 0, 16);
	put16(at, 50000);
	put16(at + 2, port);
	put16(at + 4, 16);
	checksum(14, at, 6, IPPROTO_UDP);
}

/* One record into the ring, whatever the node's own kernel does there meanwhile. */
static void ring_write(const void *vnet_hdr, uint32_t len_said)
{
	struct ring3_ring *ring = &link_memory->ring[side];
	struct ring3_side *far = &link_memory->side[!side];
	char *data = (char *)link_memory + RING3_LINK_HEAD + side * (size_t)RING3_RING_BYTES;
	uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
	uint32_t at = head % RING3_RING_BYTES, size = (sizeof(struct ring3_record) + length + 63) & ~63u;
	struct ring3_record *record = (void *)(data + at);

	if (at + size > RING3_RING_BYTES) {
		record->len = RING3_RECORD_SKIP;
		__atomic_store_n(&ring->head, head + RING3_RING_BYTES - at, __ATOMIC_RELEASE);
		return;
	}
	memset(record, 0, sizeof(*record));
	if (vnet_hdr)
		memcpy(record->vnet_hdr, vnet_hdr, sizeof(record->vnet_hdr));
	memcpy(record + 1, frame, length);
	record->len = len_said;
	__atomic_store_n(&ring->head, head + size, __ATOMIC_RELEASE);
	if (__atomic_exchange_n(&far->armed, 0, __ATOMIC_SEQ_CST)) {
		__atomic_add_fetch(&far->doorbell, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &far->doorbell, FUTEX_WAKE, 1, 0, 0, 0);
	}
	rung++;
}

static void packet_socket_send(void)
{
	if (write(packets, frame, length) == (ssize_t)length)
		sent++;
}

static void (*send_frame)(void);

static void ring_send(void)
{
	ring_write(NULL, length);
	usleep(200);	/* the far side takes it before the node's own kernel writes there */
}

static void forged(void)
{
	const uint32_t others[] = { inet_addr("198.51.100.66"), inet_addr("203.0.113.9"), inet_addr("127.0.0.1"), inet_addr("169.254.169.254"),
				    inet_addr("224.0.0.5"), inet_addr("255.255.255.255"), inet_addr("198.51.100.255") };
	const uint32_t spoofed[] = { inet_addr("198.51.100.1"), inet_addr("198.51.100.10"), inet_addr("127.0.0.1"), inet_addr("192.0.2.5"), 0 };
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };
	size_t at, i;

	for (i = 0; i < sizeof(others) / 4; i++) {
		tcp(own, others[i], 80, 2);
		send_frame();
		udp(own, others[i], 53);
		send_frame();
	}
	/* The one host, other ports, protocols and flags. */
	for (i = 0; i < 64; i++) {
		if (i == 80)
			continue;
		tcp(own, target, 22 + i % 58, i);
		send_frame();
		udp(own, target, 53 + i);
		send_frame();
	}
	/* Sources that are not the sandbox's: replies to others, the gateway's own. */
	for (i = 0; i < sizeof(spoofed) / 4; i++) {
		tcp(spoofed[i], target, 81, 2);
		send_frame();
		tcp(spoofed[i], target, 80, 0x12);
		send_frame();
		udp(spoofed[i], target, 53);
		send_frame();
	}
	/* Each protocol number: tunnels among them. */
	for (i = 0; i < 256; i++) {
		if (i == IPPROTO_TCP)
			continue;
		ethernet(ETH_P_IP);
		at = ipv4(own, target, i, 0, 40);
		frame[at] = i == IPPROTO_ICMP ? 8 : 0x45;
		send_frame();
	}
	/* ICMP errors that speak of connections of others; redirects. */
	for (i = 3; i < 13; i++) {
		ethernet(ETH_P_IP);
		at = ipv4(own, target, IPPROTO_ICMP, 0, 36);
		frame[at] = i;
		frame[at + 8] = 0x45;
		frame[at + 17] = IPPROTO_TCP;
		put32(at + 20, target);
		put32(at + 24, inet_addr("198.51.100.1"));
		put16(at + 2, fold(sum(frame + at, 36, 0)));
		send_frame();
	}
	/* Fragments: a first one of 8 bytes, the port in it forbidden; a later one that would overwrite an allowed port. */
	for (i = 0; i < 4; i++) {
		ethernet(ETH_P_IP);
		at = ipv4(own, target, i % 2 ? IPPROTO_TCP : IPPROTO_UDP, 0x2000, 8);
		put16(at, 40000);
		put16(at + 2, i < 2 ? 80 : 81);
		send_frame();
		ethernet(ETH_P_IP);
		at = ipv4(own, target, i % 2 ? IPPROTO_TCP : IPPROTO_UDP, i < 2 ? 0 : 1, 16);
		put16(at, 40000);
		put16(at + 2, 81);
		send_frame();
	}
	/* A source route through the gateway: LSRR. */
	ethernet(ETH_P_IP);
	at = ipv4(own, inet_addr("10.0.3.1"), IPPROTO_UDP, 0, 24);
	frame[14] = 0x47;
	frame[at] = 131;
	frame[at + 1] = 7;
	frame[at + 2] = 4;
	put32(at + 3, target);
	put16(24, 0);
	put16(24, fold(sum(frame + 14, 28, 0)));
	send_frame();
	/* Behind a VLAN tag, in ARP's name, to all. */
	tcp(own, target, 81, 2);
	memmove(frame + 18, frame + 14, length - 14);
	put16(12, ETH_P_8021Q);
	put16(14, 5);
	put16(16, ETH_P_IP);
	length += 4;
	send_frame();
	udp(own, target, 53);
	memcpy(frame, all, 6);
	send_frame();
	ethernet(ETH_P_ARP);
	memcpy(frame, all, 6);
	memcpy(frame + 14, "\0\1\10\0\6\4\0\2", 8);
	memcpy(frame + 22, own_mac, 6);
	put32(28, target);
	put32(38, inet_addr("10.0.3.1"));
	length = 42;
	send_frame();
	/* IPv6, to which no rule of the policy speaks: each next header, a router's advertisement, foreign sources. */
	for (i = 0; i < 256; i++) {
		ethernet(ETH_P_IPV6);
		frame[14] = 0x60;
		put16(18, 40);
		frame[20] = i;
		frame[21] = i == 58 ? 255 : 64;
		inet_pton(AF_INET6, i % 2 ? "fd00:3::2" : "2001:db8::7", frame + 22);
		inet_pton(AF_INET6, i % 3 ? "2001:db8::10" : "ff02::1", frame + 38);
		frame[54] = i == 58 ? 134 : 59;
		length = 94;
		send_frame();
	}
}

static int find_link(void)
{
	unsigned char resident;

	for (unsigned long i = 0; i < RING3_SLOTS; i++) {
		char *base = (char *)RING3_SPACE_BASE + i * RING3_SLOT_SIZE;

		if (mincore(base, 4096, &resident))
			continue;
		link_memory = (void *)(base + RING3_LINK_OFFSET);
		return link_memory->magic == RING3_LINK_MAGIC;
	}
	return 0;
}

/* The gateway's address on the link, and which side that is: from what it has sent. */
static int learn(void)
{
	for (int tries = 0; tries < 2000; tries++, usleep(10000)) {
		for (unsigned int s = 0; s < 2; s++) {
			char *data = (char *)link_memory + RING3_LINK_HEAD + s * (size_t)RING3_RING_BYTES;
			uint8_t *first = (uint8_t *)data + sizeof(struct ring3_record);

			if (!link_memory->ring[s].head || !memcmp(first + 6, own_mac, 6))
				continue;
			memcpy(gateway_mac, first + 6, 6);
			side = !s;
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct ifreq request = { .ifr_name = "eth0" };
	uint8_t header[12];
	int i, n;

	if (argc != 3)
		return 2;
	own = inet_addr(argv[1]);
	target = inet_addr(argv[2]);
	packets = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (packets < 0 || ioctl(packets, SIOCGIFHWADDR, &request))
		return 3;
	memcpy(own_mac, request.ifr_hwaddr.sa_data, 6);
	if (ioctl(packets, SIOCGIFINDEX, &request))
		return 3;
	to.sll_ifindex = request.ifr_ifindex;
	if (bind(packets, (void *)&to, sizeof(to)))
		return 3;
	if (!find_link() || !learn())
		return 4;
	send_frame = packet_socket_send;
	forged();
	printf("sent %ld\n", sent);
	send_frame = ring_send;
	forged();
	/* Headers, lengths and bytes at random; the ring may lose its step, which costs the sandbox its link. */
	for (i = 0; i < 3000; i++) {
		if (i % 2)
			tcp(own, target, 81, 2);
		else
			udp(own, target, 53);
		for (n = chance() % 4; n; n--)
			frame[14 + chance() % (length - 14)] = chance();
		/* Whatever became of it, it is none of the allowed. */
		put32(26, own);
		put32(30, inet_addr("198.51.100.66"));
		put16(24, 0);
		put16(24, fold(sum(frame + 14, 20, 0)));
		for (n = 0; n < 12; n++)
			header[n] = chance();
		ring_write(i % 4 ? header : NULL, i % 16 ? length : chance() % 70000);
		if (i % 32 == 0)
			usleep(1000);
	}
	for (i = 0; i < 1000; i++)
		__atomic_store_n(i % 2 ? &link_memory->ring[side].head : &link_memory->ring[!side].tail, chance(), __ATOMIC_RELEASE);
	printf("ring %ld\n", rung);
	return 0;
}
