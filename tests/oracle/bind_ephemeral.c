// SPDX-License-Identifier: GPL-2.0
/* Ports that the kernel chooses: in range, distinct, kept by the next calls. */
#include "oracle.h"

int main(void)
{
	int lo = 0, hi = 0, seen[200], in_range = 1, distinct = 1;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
	union address a = loopback(AF_INET, 0);
	int fd, l, c;

	need(f && fscanf(f, "%d %d", &lo, &hi) == 2);
	say("range %d %d", lo, hi);
	for (int i = 0; i < 200; i++) {
		fd = bound(AF_INET, i & 1 ? SOCK_STREAM : SOCK_DGRAM);
		seen[i] = local_port(fd);
		if (seen[i] < lo || seen[i] > hi)
			in_range = 0;
		for (int j = i & 1; j < i; j += 2)
			if (seen[j] == seen[i])
				distinct = 0;
	}
	N(in_range);
	N(distinct);

	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	say("before bind: port %d", local_port(fd));
	T(listen(fd, 1));
	say("listen alone bound it: %d", local_port(fd) >= lo);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(fd)));
	say("connect alone bound it: %d", local_port(c) >= lo);
	l = must(accept(fd, NULL, NULL));
	say("peer's port agrees: %d %d", peer_port(l) == local_port(c), peer_port(c) == local_port(fd));

	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	a.in.sin_port = htons(9);
	T(sendto(fd, "x", 1, 0, &a.sa, sizeof(a.in)));
	say("sendto alone bound it: %d", local_port(fd) >= lo);

	/* A range per socket. */
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(set_int(fd, IPPROTO_IP, 51 /* IP_LOCAL_PORT_RANGE */, 40001u << 16 | 40000));
	a.in.sin_port = 0;
	must(bind(fd, &a.sa, sizeof(a.in)));
	say("within: %d", local_port(fd) == 40000 || local_port(fd) == 40001);

	/* IP_BIND_ADDRESS_NO_PORT leaves the port to connect(). */
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(set_int(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1));
	must(bind(fd, &a.sa, sizeof(a.in)));
	say("port %d", local_port(fd));
	return 0;
}
