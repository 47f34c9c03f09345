// SPDX-License-Identifier: GPL-2.0
/* splice() of UDP datagrams into a pipe: an empty one, one that is longer than asked for, one that the pipe has no room for. */
#include "oracle.h"

static int s[2], p[2];

static void send_bytes(size_t n)
{
	static char bytes[20000];

	must(send(s[0], bytes, n, 0));
}

#define SPLICE(n) T(splice(s[1], NULL, p[1], NULL, n, SPLICE_F_NONBLOCK))

int main(void)
{
	static char buf[65536];

	alarm(20);
	udp_pair(AF_INET, s);
	must(pipe(p));
	send_bytes(0);
	send_bytes(1);
	send_bytes(0);
	send_bytes(0);
	send_bytes(2);
	for (int i = 0; i < 5; i++)
		SPLICE(100);
	T(read(p[0], buf, sizeof(buf)));
	nonblocking(s[1]);
	SPLICE(100);

	say("a part of it");
	send_bytes(3000);
	send_bytes(7);
	SPLICE(100);
	SPLICE(100);
	T(read(p[0], buf, sizeof(buf)));

	say("a small pipe");
	must(fcntl(p[1], F_SETPIPE_SZ, 4096));
	send_bytes(20000);
	send_bytes(8);
	SPLICE(20000);
	SPLICE(20000);
	T(read(p[0], buf, sizeof(buf)));
	SPLICE(20000);
	T(read(p[0], buf, sizeof(buf)));
	SPLICE(20000);
	return 0;
}
