// SPDX-License-Identifier: GPL-2.0
/* Addresses that bind() refuses. */
#include "oracle.h"

static void family(int f)
{
	union address a = loopback(f, 0), other = loopback(f == AF_INET ? AF_INET6 : AF_INET, 0);
	int fd = must(socket(f, SOCK_STREAM, 0));

	say("family %s", f == AF_INET ? "INET" : "INET6");
	T(bind(fd, &a.sa, 0));
	T(bind(fd, &a.sa, 1));
	T(bind(fd, &a.sa, 2));
	T(bind(fd, &a.sa, 15));
	T(bind(fd, &a.sa, -1));
	T(bind(fd, &a.sa, 129));
	T(bind(fd, &a.sa, INT32_MAX));
	T(bind(fd, &other.sa, address_len(&other)));
	a.sa.sa_family = 77;
	T(bind(fd, &a.sa, sizeof(a.in)));
	a.sa.sa_family = AF_UNSPEC;
	T(bind(fd, &a.sa, address_len(&a)));
	a.sa.sa_family = f;
	T(bind(fd, &a.sa, 128));
	T(bind(fd, &a.sa, address_len(&a)));
	close(fd);
	T(bind(fd, &a.sa, address_len(&a)));
}

int main(void)
{
	union address a = address4("10.99.99.99", 0), b;
	int fd = must(socket(AF_INET, SOCK_STREAM, 0)), fd2;

	family(AF_INET);
	family(AF_INET6);
	T(bind(fd, &a.sa, sizeof(a.in)));
	a = address6("2001:db8::1", 0);
	fd2 = must(socket(AF_INET6, SOCK_STREAM, 0));
	T(bind(fd2, &a.sa, sizeof(a.in6)));
	a = address6("fe80::1", 0);
	T(bind(fd2, &a.sa, sizeof(a.in6)));	/* link-local without a scope */
	a.in6.sin6_scope_id = 1;
	T(bind(fd2, &a.sa, sizeof(a.in6)));
	a = address6("ff02::1", 0);
	T(bind(fd2, &a.sa, sizeof(a.in6)));
	a = address4("224.0.0.1", 0);
	T(bind(fd, &a.sa, sizeof(a.in)));
	a = address4("255.255.255.255", 0);
	T(bind(fd, &a.sa, sizeof(a.in)));
	a = address4("127.255.255.255", 0);
	T(bind(fd, &a.sa, sizeof(a.in)));
	close(fd);
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	a = address4("224.0.0.1", 0);
	T(bind(fd, &a.sa, sizeof(a.in)));
	close(fd);

	fd = bound(AF_INET, SOCK_STREAM);
	b = loopback(AF_INET, local_port(fd));
	fd2 = must(socket(AF_INET, SOCK_STREAM, 0));
	T(bind(fd2, &b.sa, sizeof(b.in)));	/* taken */
	b = address4("0.0.0.0", local_port(fd));
	T(bind(fd2, &b.sa, sizeof(b.in)));	/* taken, by way of the wildcard */
	b = address4("127.0.0.2", local_port(fd));
	T(bind(fd2, &b.sa, sizeof(b.in)));	/* another address: free */
	b = address4("127.0.0.3", 0);
	T(bind(fd2, &b.sa, sizeof(b.in)));	/* bound already */
	T(bind(0x7fffffff, &b.sa, sizeof(b.in)));
	T(bind(-1, &b.sa, sizeof(b.in)));
	T(bind(1, &b.sa, sizeof(b.in)));
	return 0;
}
