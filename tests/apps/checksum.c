// SPDX-License-Identifier: GPL-2.0
/*
 * checksum INTERFACE MAC ADDRESS - echo requests to who is behind an interface of the host, with
 * wrong checksums and with right ones, of even and odd lengths. Says how many of each were answered.
 */
#include "oracle.h"
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/ip_icmp.h>

#define EACH	16
#define ID	0x5233
#define ROUNDS	8

static struct {
	struct ether_header ether;
	struct iphdr ip;
	struct icmphdr icmp;
	unsigned char data[64];
} __attribute__((packed)) frame;

static unsigned short checksum(const void *what, size_t len)
{
	const unsigned char *p = what;
	unsigned int sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons(~sum);
}

/* Number of the request that is answered next; -1 when none is for 2 s. */
static int answer(int fd)
{
	unsigned char got[2048];
	struct pollfd p = { fd, POLLIN };

	while (poll(&p, 1, 2000) == 1) {
		ssize_t len = recv(fd, got, sizeof(got), 0);
		struct icmphdr icmp;

		if (len < (ssize_t)(sizeof(struct ether_header) + sizeof(struct iphdr) + sizeof(icmp)))
			continue;
		memcpy(&icmp, got + sizeof(struct ether_header) + sizeof(struct iphdr), sizeof(icmp));
		if (got[sizeof(struct ether_header) + 9] == IPPROTO_ICMP && icmp.type == ICMP_ECHOREPLY &&
		    icmp.un.echo.id == htons(ID))
			return ntohs(icmp.un.echo.sequence);
	}
	return -1;
}

static void request(int fd, const struct sockaddr_ll *to, int number, int wrong)
{
	size_t len = sizeof(frame.icmp) + 20 + number;

	for (int i = 0; i < number + 20; i++)
		frame.data[i] = 0x91 + 7 * i;
	frame.ip.tot_len = htons(sizeof(frame.ip) + len);
	frame.ip.check = 0;
	frame.ip.check = checksum(&frame.ip, sizeof(frame.ip));
	frame.icmp.type = ICMP_ECHO;
	frame.icmp.un.echo.id = htons(ID);
	frame.icmp.un.echo.sequence = htons(number);
	frame.icmp.checksum = 0;
	frame.icmp.checksum = checksum(&frame.icmp, len) + wrong;
	len += sizeof(frame.ether) + sizeof(frame.ip);
	need(sendto(fd, &frame, len, 0, (const struct sockaddr *)to, sizeof(*to)) == (ssize_t)len);
}

int main(int argc, char **argv)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };
	int fd = must(socket(AF_PACKET, SOCK_RAW, 0)), answers[2] = { 0, 0 };
	bool answered[2 * EACH] = { false };
	unsigned char *mac = frame.ether.ether_dhost;
	struct ifreq ifr = { .ifr_addr.sa_family = AF_INET };

	need(argc == 4);
	need(sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3, mac + 4, mac + 5) == 6);
	to.sll_ifindex = if_nametoindex(argv[1]);
	must(bind(fd, (struct sockaddr *)&to, sizeof(to)));
	frame.ether.ether_type = htons(ETH_P_IP);
	frame.ip.version = 4;
	frame.ip.ihl = 5;
	frame.ip.ttl = 64;
	frame.ip.protocol = IPPROTO_ICMP;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", argv[1]);
	must(ioctl(must(socket(AF_INET, SOCK_DGRAM, 0)), SIOCGIFADDR, &ifr));
	frame.ip.saddr = ((struct sockaddr_in *)&ifr.ifr_addr)->sin_addr.s_addr;
	need(inet_pton(AF_INET, argv[3], &frame.ip.daddr) == 1);
	/*
	 * Answers come in order: when all of the right ones have come, the wrong ones', sent before, would
	 * have. A machine with other work loses frames: what was not answered is asked again.
	 */
	for (int round = 0; round < ROUNDS && answers[0] < EACH; round++) {
		int number;

		for (int i = 2 * EACH; i--;)
			if (!answered[i])
				request(fd, &to, i, i >= EACH);
		while (answers[0] < EACH && (number = answer(fd)) >= 0) {
			need(number < 2 * EACH);
			answers[number >= EACH] += !answered[number];
			answered[number] = true;
		}
	}
	say("of %d: right %d, wrong %d", EACH, answers[0], answers[1]);
	return 0;
}
