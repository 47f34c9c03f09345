// SPDX-License-Identifier: GPL-2.0
/* The owner of a network namespace may use low ports; a sysctl sets the first unprivileged port. */
#include "oracle.h"

int main(void)
{
	union address a = loopback(AF_INET, 80);
	int fd = must(socket(AF_INET, SOCK_STREAM, 0)), start = -1;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");

	need(f && fscanf(f, "%d", &start) == 1);
	N(start);
	T(bind(fd, &a.sa, sizeof(a.in)));
	T(listen(fd, 1));
	N(local_port(fd));
	a = loopback(AF_INET6, 443);
	fd = must(socket(AF_INET6, SOCK_STREAM, 0));
	T(bind(fd, &a.sa, sizeof(a.in6)));
	N(local_port(fd));
	return 0;
}
