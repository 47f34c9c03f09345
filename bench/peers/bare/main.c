// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * bare - answers `pingpong` on a TAP with no stack behind it
 *
 *	bare TAP ADDRESS pingpong serve tcp|udp PORT SIZE
 *
 * What no stack can be better than. It looks at its TAP without ever sleeping, and answers out of the frame
 * that came: no checksum, no queue, no timer, no second connection, no loss. What time is left is the other end's,
 * its TAP's, and its wake-up.
 *
 * ARP (RFC 826), UDP and as much TCP (RFC 9293) as one connection at a time over a wire without losses needs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <netinet/if_ether.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define MSS	1460

struct frame {
	struct virtio_net_hdr_v1 v;
	struct ether_header eth;
	union {
		struct ether_arp arp;
		struct {
			struct iphdr ip;
			union {
				struct tcphdr tcp;
				struct udphdr udp;
			};
		};
	};
	char rest[2048];
} __attribute__((packed));

static const uint8_t mac[ETH_ALEN] = { 0x02, 0, 0, 0, 0x83, 0x02 };
static struct frame f;
static uint32_t address;
static int tap;

/* The connection: what we have received and sent. */
static uint32_t got, sent;

static void die(const char *what)
{
	fprintf(stderr, "bare: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void put(size_t len)
{
	len += offsetof(struct frame, eth);
	while (write(tap, &f, len) != (ssize_t)len)
		if (errno != EAGAIN && errno != ENOBUFS)
			die("write");
}

static uint16_t folded(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static uint32_t sum_of(const void *p, size_t len)
{
	const uint16_t *word = p;
	uint32_t sum = 0;

	for (; len > 1; len -= 2)
		sum += *word++;
	return sum;
}

/* The frame goes back where it came from, with a sum that the other end has to finish, and so does not look at. */
static void answer(uint8_t protocol, uint16_t head, uint16_t check, size_t payload)
{
	size_t len = head + payload;
	uint32_t from = f.ip.saddr;

	memcpy(f.eth.ether_dhost, f.eth.ether_shost, ETH_ALEN);
	memcpy(f.eth.ether_shost, mac, ETH_ALEN);
	f.ip.saddr = address;
	f.ip.daddr = from;
	f.ip.tot_len = htons(sizeof(f.ip) + len);
	f.ip.check = 0;
	f.ip.check = ~folded(sum_of(&f.ip, sizeof(f.ip)));
	memset(&f.v, 0, sizeof(f.v));
	f.v.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
	f.v.csum_start = sizeof(f.eth) + sizeof(f.ip);
	f.v.csum_offset = check;
	*(uint16_t *)((char *)&f.tcp + check) =
		folded(sum_of(&f.ip.saddr, 8) + htons(protocol) + htons(len));
	put(f.v.csum_start + len);
}

/* `flags` and the first `payload` bytes behind the head, back to where it came from. */
static void answer_tcp(uint8_t flags, size_t options, size_t payload)
{
	uint16_t port = f.tcp.source;

	f.tcp.source = f.tcp.dest;
	f.tcp.dest = port;
	f.tcp.seq = htonl(sent);
	f.tcp.ack_seq = htonl(got);
	((uint8_t *)&f.tcp)[13] = flags;
	f.tcp.doff = (sizeof(f.tcp) + options) / 4;
	f.tcp.window = 0xffff;
	f.tcp.urg_ptr = 0;
	sent += payload + !!(flags & (TH_SYN | TH_FIN));
	answer(IPPROTO_TCP, sizeof(f.tcp) + options, offsetof(struct tcphdr, check), payload);
}

static void arp(void)
{
	if (f.arp.ea_hdr.ar_op != htons(ARPOP_REQUEST) || memcmp(f.arp.arp_tpa, &address, 4))
		return;
	memcpy(f.eth.ether_dhost, f.eth.ether_shost, ETH_ALEN);
	memcpy(f.eth.ether_shost, mac, ETH_ALEN);
	f.arp.ea_hdr.ar_op = htons(ARPOP_REPLY);
	memcpy(f.arp.arp_tha, f.arp.arp_sha, ETH_ALEN);
	memcpy(f.arp.arp_tpa, f.arp.arp_spa, 4);
	memcpy(f.arp.arp_sha, mac, ETH_ALEN);
	memcpy(f.arp.arp_spa, &address, 4);
	memset(&f.v, 0, sizeof(f.v));
	put(sizeof(f.eth) + sizeof(f.arp));
}

static void udp(void)
{
	uint16_t port = f.udp.source;
	size_t payload = ntohs(f.udp.len) - sizeof(f.udp);

	f.udp.source = f.udp.dest;
	f.udp.dest = port;
	answer(IPPROTO_UDP, sizeof(f.udp), offsetof(struct udphdr, check), payload);
}

/* A SYN: no option but the MSS. */
static void begin(void)
{
	static const uint8_t options[4] = { TCPOPT_MAXSEG, sizeof(options), MSS >> 8, MSS & 0xff };

	got = ntohl(f.tcp.seq) + 1;
	sent = 1;
	memcpy(&f.tcp + 1, options, sizeof(options));
	answer_tcp(TH_SYN | TH_ACK, sizeof(options), 0);
}

static void tcp(void)
{
	uint8_t flags = ((uint8_t *)&f.tcp)[13];
	size_t head = f.tcp.doff * 4, payload = ntohs(f.ip.tot_len) - sizeof(f.ip) - head;
	char *p = (char *)&f.tcp + head;

	if (flags & TH_RST)
		return;
	if (flags & TH_SYN) {
		begin();
		return;
	}
	if (ntohl(f.tcp.seq) != got) {
		answer_tcp(TH_ACK, 0, 0);
		return;
	}
	got += payload;
	if (flags & TH_FIN) {
		got++;
		answer_tcp(TH_ACK | TH_FIN, 0, 0);
		exit(0);
	}
	if (!payload)
		return;
	memmove(&f.tcp + 1, p, payload);
	answer_tcp(TH_ACK | TH_PUSH, 0, payload);
}

int main(int argc, char **argv)
{
	struct ifreq r = { .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR };
	int vnet = sizeof(struct virtio_net_hdr_v1), is_udp;

	if (argc != 8 || strcmp(argv[3], "pingpong") || strcmp(argv[4], "serve")) {
		fprintf(stderr, "usage: see the head of main.c\n");
		return 2;
	}
	is_udp = !strcmp(argv[5], "udp");
	if (!inet_aton(argv[2], (struct in_addr *)&address)) {
		fprintf(stderr, "bare: %s: not an address\n", argv[2]);
		return 2;
	}
	tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
	if (tap < 0)
		die("/dev/net/tun");
	strncpy(r.ifr_name, argv[1], IFNAMSIZ - 1);
	if (ioctl(tap, TUNSETIFF, &r) || ioctl(tap, TUNSETVNETHDRSZ, &vnet) ||
	    ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM))
		die(argv[1]);
	puts("ready");
	fflush(stdout);
	for (;;) {
		ssize_t n = read(tap, &f, sizeof(f));

		if (n < 0 && errno == EAGAIN)
			continue;
		if (n < 0)
			die("read");
		if (f.eth.ether_type == htons(ETHERTYPE_ARP))
			arp();
		if (f.eth.ether_type != htons(ETHERTYPE_IP) || f.ip.daddr != address)
			continue;
		if (f.ip.protocol == IPPROTO_UDP)
			udp();
		/* UDP's asking end says by a connection when it is over. */
		else if (f.ip.protocol == IPPROTO_TCP && is_udp && ((uint8_t *)&f.tcp)[13] & TH_PUSH)
			return 0;
		else if (f.ip.protocol == IPPROTO_TCP)
			tcp();
	}
}
