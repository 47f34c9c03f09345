// SPDX-License-Identifier: GPL-2.0
/* SO_LINGER as a value, and what closing does with it. */
#include "oracle.h"

static void value(int fd, int on, int seconds)
{
	struct linger l = { on, seconds };
	socklen_t len = sizeof(l);
	int r = setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), e = r ? errno : 0;

	must(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len));
	say("linger %d %d: %s, now %d %d", on, seconds, ename(e), l.l_onoff, l.l_linger);
}

int main(void)
{
	struct linger l = { 1, 0 };
	static char big[1 << 20];
	int p[2], fd = must(socket(AF_INET, SOCK_STREAM, 0));
	double start;
	char b[16];

	value(fd, 0, 0);
	value(fd, 1, 0);
	value(fd, 5, 10);
	value(fd, 0, 99);

	/* Zero: an RST, at once. */
	tcp_pair(AF_INET, p);
	must(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	T(write(p[0], "data", 4));
	T(close(p[0]));
	sleep_ms(20);
	say("polled %s", polled(p[1]));
	T(read(p[1], b, sizeof(b)));
	T(read(p[1], b, sizeof(b)));
	close(p[1]);

	/* One second, and a peer that does not read: close() waits that long. */
	tcp_pair(AF_INET, p);
	l.l_linger = 1;
	must(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	nonblocking(p[0]);
	while (write(p[0], big, sizeof(big)) > 0)
		;
	start = seconds();
	T(close(p[0]));
	say("non-blocking close waits too: %s", about(start, 1));
	close(p[1]);

	/* A peer that has everything: no wait. */
	tcp_pair(AF_INET, p);
	l.l_linger = 10;
	must(setsockopt(p[0], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	must(write(p[0], "x", 1));
	start = seconds();
	close(p[1]);
	T(close(p[0]));
	say("%s", about(start, 0));
	return 0;
}
