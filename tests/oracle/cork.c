// SPDX-License-Identifier: GPL-2.0
/* TCP_CORK, TCP_NODELAY and MSG_MORE: which data is held back, and what releases it. */
#include "oracle.h"

static int p[2];

static int arrived(void)
{
	int n = 0;

	sleep_ms(20);
	must(ioctl(p[1], FIONREAD, &n));
	return n;
}

int main(void)
{
	static char big[200000];
	double start;

	tcp_pair(AF_INET, p);
	must(write(p[0], "a", 1));
	N(arrived());
	T(set_int(p[0], IPPROTO_TCP, TCP_CORK, 1));
	must(write(p[0], "bc", 2));
	must(write(p[0], "de", 2));
	N(arrived());
	T(set_int(p[0], IPPROTO_TCP, TCP_CORK, 0));
	N(arrived());
	must(send(p[0], "fg", 2, MSG_MORE));
	N(arrived());
	must(send(p[0], "h", 1, 0));
	N(arrived());
	must(send(p[0], "i", 1, MSG_MORE));
	T(set_int(p[0], IPPROTO_TCP, TCP_NODELAY, 1));	/* pushes */
	N(arrived());
	/* A corked end goes after 200 ms by itself. */
	T(set_int(p[0], IPPROTO_TCP, TCP_CORK, 1));
	must(write(p[0], "j", 1));
	start = seconds();
	N(arrived());
	while (arrived() < 10 && seconds() - start < 3)
		;
	say("by itself: %s", about(start, 0.15));
	must(write(p[0], big, 100000));
	say("whole segments are not held back %d", arrived() > 30000);
	must(shutdown(p[0], SHUT_WR));
	N(arrived());
	return 0;
}
