// SPDX-License-Identifier: GPL-2.0
/* IPv6 sockets that serve IPv4 too, and those that don't. */
#include "oracle.h"

static int server(int v6only)
{
	union address any = address6("::", 0);
	int fd = must(socket(AF_INET6, SOCK_STREAM, 0));

	must(set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6only));
	must(bind(fd, &any.sa, sizeof(any.in6)));
	must(listen(fd, 4));
	return fd;
}

int main(void)
{
	int l = server(0), port = local_port(l), c, s, u, fd;
	union address a, any4 = address4("0.0.0.0", 0);
	socklen_t len = sizeof(a);

	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect_port(c, AF_INET, port));
	s = must(accept(l, &a.sa, &len));
	say("peer %s len %d", address_text(&a), len);
	len = sizeof(a);
	must(getsockname(s, &a.sa, &len));
	say("own %s", address_text(&a));
	T(write(c, "x", 1));
	T(read(s, &fd, 4));
	N(int_option(s, IPPROTO_IPV6, IPV6_V6ONLY));
	N(int_option(s, SOL_SOCKET, SO_DOMAIN));
	c = must(socket(AF_INET6, SOCK_STREAM, 0));
	a = address6("::ffff:127.0.0.1", port);
	T(connect(c, &a.sa, sizeof(a.in6)));
	len = sizeof(a);
	must(getsockname(c, &a.sa, &len));
	say("mapped client %s", address_text(&a));
	any4.in.sin_port = htons(port);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(bind(fd, &any4.sa, sizeof(any4.in)));
	T(set_int(l, IPPROTO_IPV6, IPV6_V6ONLY, 1));	/* too late */
	close(l);

	l = server(1);
	port = local_port(l);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect_port(c, AF_INET, port));
	c = must(socket(AF_INET6, SOCK_STREAM, 0));
	T(connect_port(c, AF_INET6, port));
	any4.in.sin_port = htons(port);
	T(bind(fd, &any4.sa, sizeof(any4.in)));
	T(listen(fd, 1));
	c = must(socket(AF_INET6, SOCK_STREAM, 0));
	must(set_int(c, IPPROTO_IPV6, IPV6_V6ONLY, 1));
	a = address6("::ffff:127.0.0.1", port);
	T(connect(c, &a.sa, sizeof(a.in6)));
	T(bind(c, &a.sa, sizeof(a.in6)));

	u = must(socket(AF_INET6, SOCK_DGRAM, 0));
	a = address6("::ffff:127.0.0.1", 9);
	T(sendto(u, "x", 1, 0, &a.sa, sizeof(a.in6)));
	a = loopback(AF_INET, 9);
	T(sendto(u, "x", 1, 0, &a.sa, sizeof(a.in)));
	a = address6("::", 9);
	T(sendto(u, "x", 1, 0, &a.sa, sizeof(a.in6)));

	return 0;
}
