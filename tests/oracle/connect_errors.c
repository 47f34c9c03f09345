// SPDX-License-Identifier: GPL-2.0
/* Errors of connect(), and the state of the socket after them. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 4), fd, u;
	union address a = loopback(AF_INET, local_port(l)), b;
	socklen_t len = sizeof(b);
	char buf[4];

	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(fd, &a.sa, 0));
	T(connect(fd, &a.sa, 1));
	T(connect(fd, &a.sa, 15));
	T(connect(fd, &a.sa, -1));
	T(connect(fd, &a.sa, 200));
	a.sa.sa_family = AF_INET6;
	T(connect(fd, &a.sa, sizeof(a.in)));
	a.sa.sa_family = 99;
	T(connect(fd, &a.sa, sizeof(a.in)));
	a.sa.sa_family = AF_INET;
	T(connect(fd, &a.sa, 128));
	T(connect(fd, &a.sa, sizeof(a.in)));
	T(connect(l, &a.sa, sizeof(a.in)));
	T(connect(-1, &a.sa, sizeof(a.in)));
	T(connect(1, &a.sa, sizeof(a.in)));

	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	b = loopback(AF_INET, 1);
	T(connect(fd, &b.sa, sizeof(b.in)));	/* refused */
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	say("polled %s", polled(fd));
	T(connect(fd, &a.sa, sizeof(a.in)));	/* and the socket can be used again */
	say("state %s", tcp_state(fd));

	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	b = address4("10.1.2.3", 80);
	T(connect(fd, &b.sa, sizeof(b.in)));	/* no route */
	b = address4("255.255.255.255", 80);
	T(connect(fd, &b.sa, sizeof(b.in)));
	b = address4("224.0.0.1", 80);
	T(connect(fd, &b.sa, sizeof(b.in)));
	b = address4("127.255.255.255", 80);
	T(connect(fd, &b.sa, sizeof(b.in)));
	b = address4("0.0.0.0", local_port(l));
	T(connect(fd, &b.sa, sizeof(b.in)));	/* the wildcard means this host */
	len = sizeof(b);
	must(getpeername(fd, &b.sa, &len));
	say("peer %s", address_text(&b));

	fd = must(socket(AF_INET6, SOCK_STREAM, 0));
	b = address6("2001:db8::1", 80);
	T(connect(fd, &b.sa, sizeof(b.in6)));
	b = address6("fe80::1", 80);
	T(connect(fd, &b.sa, sizeof(b.in6)));
	b = address6("::1", 1);
	T(connect(fd, &b.sa, sizeof(b.in6)));

	/* AF_UNSPEC takes a connection back. */
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(fd, &a.sa, sizeof(a.in)));
	memset(&b, 0, sizeof(b));
	T(connect(fd, &b.sa, sizeof(b.in)));
	say("state %s", tcp_state(fd));
	T(connect(fd, &a.sa, sizeof(a.in)));
	say("state %s", tcp_state(fd));

	u = bound(AF_INET, SOCK_DGRAM);
	T(connect(u, &a.sa, sizeof(a.in)));
	T(connect(u, &a.sa, sizeof(a.in)));
	T(send(u, "x", 1, 0));
	memset(&b, 0, sizeof(b));
	T(connect(u, &b.sa, sizeof(b.sa)));
	T(send(u, "x", 1, 0));
	T(recv(u, buf, 4, MSG_DONTWAIT));
	len = sizeof(b);
	T(getpeername(u, &b.sa, &len));
	b = address4("255.255.255.255", 80);
	T(connect(u, &b.sa, sizeof(b.in)));	/* needs SO_BROADCAST */
	return 0;
}
