// SPDX-License-Identifier: GPL-2.0
/* SO_REUSEADDR: next to bound, listening and closed-but-waiting sockets. */
#include "oracle.h"

static int try(int port, int reuse, const char *text)
{
	union address a = address4(text, port);
	int fd = must(socket(AF_INET, SOCK_STREAM, 0)), r;

	must(set_int(fd, SOL_SOCKET, SO_REUSEADDR, reuse));
	r = bind(fd, &a.sa, sizeof(a.in));
	say("  %s reuse %d -> %s", text, reuse, r ? ename(errno) : "ok");
	if (!r)
		say("    listen -> %s", listen(fd, 1) ? ename(errno) : "ok");
	close(fd);
	return r;
}

static void all(int port)
{
	try(port, 0, "127.0.0.1");
	try(port, 1, "127.0.0.1");
	try(port, 1, "0.0.0.0");
	try(port, 1, "127.0.0.2");
	try(port, 0, "127.0.0.2");
}

int main(void)
{
	int fd = bound(AF_INET, SOCK_STREAM), port = local_port(fd), c, s, l;
	union address a;

	say("plain bound");
	all(port);
	must(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	say("bound, reuse");
	all(port);
	must(listen(fd, 1));
	say("listening, reuse");
	all(port);

	/* The side that closes first waits: its port stays busy without the option. */
	l = listener(AF_INET, 1);
	port = local_port(l);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, port));
	s = must(accept(l, NULL, NULL));
	close(s);
	need(wait_for(c, POLLIN));
	close(c);
	close(l);
	say("TIME_WAIT");
	all(port);

	say("udp");
	fd = bound(AF_INET, SOCK_DGRAM);
	a = loopback(AF_INET, local_port(fd));
	c = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(bind(c, &a.sa, sizeof(a.in)));
	must(set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1));
	T(bind(c, &a.sa, sizeof(a.in)));
	must(set_int(c, SOL_SOCKET, SO_REUSEADDR, 1));
	T(bind(c, &a.sa, sizeof(a.in)));
	return 0;
}
