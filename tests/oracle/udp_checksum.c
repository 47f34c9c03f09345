// SPDX-License-Identifier: GPL-2.0
/* Datagrams with a checksum of our own, right and wrong, of every length up to 140: which ones come? */
#include "oracle.h"
#include <netinet/ip.h>
#include <netinet/udp.h>

#define LONGEST	140

static struct {
	struct iphdr ip;
	struct udphdr udp;
	unsigned char data[LONGEST];
} packet;

static unsigned int sum_of(const void *what, size_t len)
{
	const unsigned char *p = what;
	unsigned int sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	return sum;
}

static unsigned short checksum(size_t len)
{
	unsigned int sum = sum_of(&packet.ip.saddr, 8) + IPPROTO_UDP + len;

	packet.udp.check = 0;
	sum += sum_of(&packet.udp, len);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(sum == 0xffff ? sum : ~sum);
}

/* Did a datagram of that many bytes come, with `wrong` added to its checksum? */
static bool comes(int raw, int u, size_t bytes, int wrong)
{
	union address to = loopback(AF_INET, 0);
	size_t len = sizeof(packet.udp) + bytes;
	unsigned char got[LONGEST];

	for (size_t i = 0; i < bytes; i++)
		packet.data[i] = 0x91 + 7 * i + bytes;
	packet.udp.len = htons(len);
	packet.udp.check = checksum(len) + wrong;
	if (!packet.udp.check)	/* would say that there is none */
		packet.udp.check = 0xffff - wrong;
	must(sendto(raw, &packet, sizeof(packet.ip) + len, 0, &to.sa, sizeof(to.in)));
	return recv(u, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)bytes && !memcmp(got, packet.data, bytes);
}

int main(void)
{
	int raw = must(socket(AF_INET, SOCK_RAW, IPPROTO_RAW)), u = bound(AF_INET, SOCK_DGRAM);

	packet.ip.version = 4;
	packet.ip.ihl = 5;
	packet.ip.ttl = 64;
	packet.ip.protocol = IPPROTO_UDP;
	packet.ip.saddr = htonl(INADDR_LOOPBACK);
	packet.ip.daddr = htonl(INADDR_LOOPBACK);
	packet.udp.dest = htons(local_port(u));
	packet.udp.source = htons(77);
	for (int wrong = 0; wrong <= 1; wrong++)
		for (size_t bytes = 0; bytes <= LONGEST; bytes++)
			if (comes(raw, u, bytes, wrong) == wrong)
				say("%zu bytes, %s: %s", bytes, wrong ? "wrong" : "right", wrong ? "came" : "lost");
	say("done");
	return 0;
}
