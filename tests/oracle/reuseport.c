// SPDX-License-Identifier: GPL-2.0
/* SO_REUSEPORT: several sockets on one port share the work; strangers stay out. */
#include "oracle.h"

static int member(int type, int port, int reuse)
{
	union address a = loopback(AF_INET, port);
	int fd = must(socket(AF_INET, type, 0));

	must(set_int(fd, SOL_SOCKET, SO_REUSEPORT, reuse));
	if (bind(fd, &a.sa, sizeof(a.in))) {
		say("bind -> %s", ename(errno));
		close(fd);
		return -1;
	}
	return fd;
}

int main(void)
{
	int m[4], port, got = 0, used = 0;
	char b[8];

	m[0] = member(SOCK_DGRAM, 0, 1);
	port = local_port(m[0]);
	for (int i = 1; i < 4; i++)
		m[i] = member(SOCK_DGRAM, port, 1);
	N(member(SOCK_DGRAM, port, 0));
	for (int i = 0; i < 200; i++) {
		int c = must(socket(AF_INET, SOCK_DGRAM, 0));

		must(connect_port(c, AF_INET, port));
		must(send(c, "x", 1, 0));
		close(c);
	}
	for (int i = 0; i < 4; i++) {
		int mine = 0;

		while (recv(m[i], b, 8, MSG_DONTWAIT) == 1)
			mine++;
		got += mine;
		used += mine > 0;
	}
	say("datagrams %d, more than one member used %d", got, used > 1);

	m[0] = member(SOCK_STREAM, 0, 1);
	port = local_port(m[0]);
	must(listen(m[0], 100));
	m[1] = member(SOCK_STREAM, port, 1);
	must(listen(m[1], 100));
	N(member(SOCK_STREAM, port, 0));
	nonblocking(m[0]);
	nonblocking(m[1]);
	got = used = 0;
	for (int i = 0; i < 60; i++)
		must(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, port));
	for (int i = 0; i < 2; i++) {
		int mine = 0;

		while (accept(m[i], NULL, NULL) >= 0)
			mine++;
		got += mine;
		used += mine > 0;
	}
	say("connections %d, both used %d", got, used == 2);
	return 0;
}
