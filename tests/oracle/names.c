// SPDX-License-Identifier: GPL-2.0
/* getsockname() and getpeername(): lengths, states, errors. */
#include "oracle.h"

static void show(const char *what, int fd, int peer, int size)
{
	union address a;
	socklen_t len = size;
	int r;

	memset(&a, 0xee, sizeof(a));
	r = peer ? getpeername(fd, &a.sa, &len) : getsockname(fd, &a.sa, &len);
	if (r)
		say("%s size %d -> %s", what, size, ename(errno));
	else
		say("%s size %d -> len %d family %d %s, next byte %#x", what, size, len,
		    size >= 2 ? a.sa.sa_family : -1,
		    size >= 28 ? address_text(&a) : "", ((unsigned char *)&a)[size & 127]);
}

static void family(int f)
{
	static const int sizes[] = { 28, 16, 8, 2, 1, 0, -1, 127 };
	int pair[2], fd = must(socket(f, SOCK_STREAM, 0)), u = must(socket(f, SOCK_DGRAM, 0));

	show("fresh", fd, 0, 28);
	show("fresh peer", fd, 1, 28);
	show("udp fresh", u, 0, 28);
	show("udp fresh peer", u, 1, 28);
	must(connect_port(u, f, 9));
	show("udp connected", u, 0, 28);
	show("udp connected peer", u, 1, 28);
	tcp_pair(f, pair);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		show("name", pair[0], 0, sizes[i]);
		show("peer", pair[0], 1, sizes[i]);
	}
	close(pair[1]);
	need(wait_for(pair[0], POLLIN));
	show("after FIN peer", pair[0], 1, 28);
	shutdown(pair[0], SHUT_WR);
	show("after both FIN peer", pair[0], 1, 28);
	show("after both FIN name", pair[0], 0, 28);
	close(pair[0]);
	show("closed", pair[0], 0, 28);
	show("stdin", 0, 0, 28);
}

int main(void)
{
	family(AF_INET);
	family(AF_INET6);
	return 0;
}
