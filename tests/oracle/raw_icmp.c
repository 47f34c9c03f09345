// SPDX-License-Identifier: GPL-2.0
/* Raw ICMP: an echo request and its answer, seen with the IP header; the filter. */
#include "oracle.h"
#include <netinet/ip_icmp.h>

#ifndef ICMP_FILTER
#define ICMP_FILTER 1
#endif

static uint16_t sum(const void *data, size_t len)
{
	const uint16_t *p = data;
	uint32_t s = 0;

	for (; len > 1; len -= 2)
		s += *p++;
	if (len)
		s += *(const uint8_t *)p;
	s = (s >> 16) + (s & 0xffff);
	return ~(s + (s >> 16));
}

int main(void)
{
	int fd = must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	union address to = loopback(AF_INET, 0), from;
	socklen_t len = sizeof(from);
	struct {
		struct icmphdr h;
		char data[24];
	} echo = { .h = { .type = ICMP_ECHO } };
	unsigned char b[128];
	uint32_t filter = 1u << ICMP_ECHO;
	ssize_t n;

	echo.h.un.echo.id = htons(0x1234);
	echo.h.un.echo.sequence = htons(7);
	memcpy(echo.data, "twenty-four bytes of it", 24);
	echo.h.checksum = sum(&echo, sizeof(echo));
	T(sendto(fd, &echo, sizeof(echo), 0, &to.sa, sizeof(to.in)));
	for (int i = 0; i < 2; i++) {	/* the request, then the answer */
		struct iphdr *ip = (struct iphdr *)b;
		struct icmphdr *h = (struct icmphdr *)(b + 20);

		n = recvfrom(fd, b, sizeof(b), 0, &from.sa, &len);
		say("%zd bytes from %s port %d: ihl %d ttl %d proto %d type %d id %#x seq %d sum ok %d data ok %d",
		    n, address_text(&from), ntohs(from.in.sin_port), ip->ihl, ip->ttl, ip->protocol,
		    h->type, ntohs(h->un.echo.id), ntohs(h->un.echo.sequence),
		    sum(h, sizeof(echo)) == 0, !memcmp(b + 28, echo.data, 24));
	}
	T(setsockopt(fd, IPPROTO_RAW, ICMP_FILTER, &filter, sizeof(filter)));
	T(sendto(fd, &echo, sizeof(echo), 0, &to.sa, sizeof(to.in)));
	n = recv(fd, b, sizeof(b), 0);
	say("%zd type %d", n, b[20]);
	T(recv(fd, b, sizeof(b), MSG_DONTWAIT));

	/* Somebody else's raw socket sees the unreachable that UDP causes. */
	filter = 0;
	must(setsockopt(fd, IPPROTO_RAW, ICMP_FILTER, &filter, sizeof(filter)));
	int u = must(socket(AF_INET, SOCK_DGRAM, 0));
	to.in.sin_port = htons(9);
	must(sendto(u, "x", 1, 0, &to.sa, sizeof(to.in)));
	n = recv(fd, b, sizeof(b), 0);
	say("%zd type %d code %d, inner protocol %d", n, b[20], b[21], b[28 + 9]);

	/* Connected, bound. */
	T(connect_port(fd, AF_INET, 0));
	T(send(fd, &echo, sizeof(echo), 0));
	T(bind(fd, &to.sa, sizeof(to.in)));
	return 0;
}
