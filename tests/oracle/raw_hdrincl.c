// SPDX-License-Identifier: GPL-2.0
/* Raw sockets with a header of one's own; raw UDP; protocol 253; raw over IPv6 with a checksum offset. */
#include "oracle.h"
#include <netinet/icmp6.h>

int main(void)
{
	int raw = must(socket(AF_INET, SOCK_RAW, IPPROTO_RAW)), u = bound(AF_INET, SOCK_DGRAM);
	int listen253 = must(socket(AF_INET, SOCK_RAW, 253));
	union address to = loopback(AF_INET, 0), from;
	struct {
		struct iphdr ip;
		struct udphdr udp;
		char data[4];
	} p = { 0 };
	char b[64];
	socklen_t len = sizeof(from);
	int six = must(socket(AF_INET6, SOCK_RAW, 253)), icmp6 = must(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6));
	struct icmp6_filter f;
	struct icmp6_hdr echo6 = { .icmp6_type = ICMP6_ECHO_REQUEST };
	union address to6 = loopback(AF_INET6, 0);

	N(int_option(raw, IPPROTO_IP, IP_HDRINCL));
	p.ip.version = 4;
	p.ip.ihl = 5;
	p.ip.ttl = 64;
	p.ip.protocol = IPPROTO_UDP;
	p.ip.saddr = htonl(INADDR_LOOPBACK + 6);
	p.ip.daddr = htonl(INADDR_LOOPBACK);
	p.udp.dest = htons(local_port(u));
	p.udp.source = htons(77);
	p.udp.len = htons(12);
	memcpy(p.data, "raw!", 4);
	T(sendto(raw, &p, sizeof(p), 0, &to.sa, sizeof(to.in)));
	T(recvfrom(u, b, sizeof(b), MSG_DONTWAIT, &from.sa, &len));
	say("from %s port %d", address_text(&from), ntohs(from.in.sin_port));
	T(sendto(raw, &p, 10, 0, &to.sa, sizeof(to.in)));
	p.ip.ihl = 15;
	T(sendto(raw, &p, sizeof(p), 0, &to.sa, sizeof(to.in)));
	T(recv(raw, b, sizeof(b), MSG_DONTWAIT));

	T(sendto(listen253, "payload", 7, 0, &to.sa, sizeof(to.in)));
	T(recv(listen253, b, sizeof(b), MSG_DONTWAIT));
	T(send(listen253, "x", 1, 0));

	T(sendto(six, "payload", 7, 0, &to6.sa, sizeof(to6.in6)));
	T(recv(six, b, sizeof(b), MSG_DONTWAIT));
	T(set_int(six, IPPROTO_IPV6, IPV6_CHECKSUM, 2));
	T(sendto(six, "payload", 7, 0, &to6.sa, sizeof(to6.in6)));
	T(recv(six, b, sizeof(b), MSG_DONTWAIT));
	T(set_int(six, IPPROTO_IPV6, IPV6_CHECKSUM, 3));
	T(set_int(icmp6, IPPROTO_IPV6, IPV6_CHECKSUM, 2));
	ICMP6_FILTER_SETBLOCKALL(&f);
	ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &f);
	T(setsockopt(icmp6, IPPROTO_ICMPV6, ICMP6_FILTER, &f, sizeof(f)));
	T(sendto(icmp6, &echo6, sizeof(echo6), 0, &to6.sa, sizeof(to6.in6)));
	T(recv(icmp6, b, sizeof(b), 0));
	say("type %d", (unsigned char)b[0]);
	T(recv(icmp6, b, sizeof(b), MSG_DONTWAIT));
	return 0;
}
