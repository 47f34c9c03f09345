// SPDX-License-Identifier: GPL-2.0
/* Unprivileged ICMP: a sysctl says which groups may use it; the kernel fills in the identifier. */
#include "oracle.h"
#include <netinet/ip_icmp.h>
#include <netinet/icmp6.h>

static void ping(int f)
{
	int fd;
	union address to = loopback(f, 0);
	struct icmphdr h = { .type = f == AF_INET ? ICMP_ECHO : ICMP6_ECHO_REQUEST };
	struct icmphdr back;
	ssize_t n;

	fd = must(socket(f, SOCK_DGRAM, f == AF_INET ? IPPROTO_ICMP : IPPROTO_ICMPV6));
	h.un.echo.sequence = htons(3);
	T(sendto(fd, &h, sizeof(h), 0, &to.sa, address_len(&to)));
	n = recv(fd, &back, sizeof(back), 0);
	say("%zd type %d seq %d id is the port %d", n, back.type, ntohs(back.un.echo.sequence),
	    ntohs(back.un.echo.id) == local_port(fd));
	h.type = ICMP_TIMESTAMP;
	T(sendto(fd, &h, sizeof(h), 0, &to.sa, address_len(&to)));
	T(sendto(fd, &h, 4, 0, &to.sa, address_len(&to)));
	T(listen(fd, 1));
}

int main(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ping_group_range", "r+");
	int lo = -1, hi = -1;

	need(f && fscanf(f, "%d %d", &lo, &hi) == 2);
	OK(socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	rewind(f);
	need(fprintf(f, "0 0\n") > 0 && !fflush(f));
	ping(AF_INET);
	ping(AF_INET6);
	return 0;
}
