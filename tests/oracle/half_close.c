// SPDX-License-Identifier: GPL-2.0
/* After a FIN in one direction the other still works; the states that TCP passes through. */
#include "oracle.h"

static void states(int p[2])
{
	sleep_ms(100);
	say("%s %s | %s | %s", tcp_state(p[0]), tcp_state(p[1]), polled(p[0]), polled(p[1]));
}

int main(void)
{
	static char big[300000];
	char b[16];
	int p[2];
	size_t total = 0;
	ssize_t n;

	tcp_pair(AF_INET, p);
	states(p);
	T(write(p[0], "request", 7));
	T(shutdown(p[0], SHUT_WR));
	states(p);
	T(read(p[1], b, 16));
	T(read(p[1], b, 16));
	T(read(p[1], b, 16));
	T(send(p[0], "x", 1, MSG_NOSIGNAL));
	nonblocking(p[1]);
	for (size_t sent = 0; sent < sizeof(big);) {
		n = write(p[1], big + sent, sizeof(big) - sent);
		if (n > 0)
			sent += n;
		else
			need(errno == EAGAIN);
		while ((n = recv(p[0], big, 65536, MSG_DONTWAIT)) > 0)
			total += n;
	}
	T(shutdown(p[1], SHUT_WR));
	while ((n = recv(p[0], big, sizeof(big), 0)) > 0)
		total += n;
	N(n);
	N(total);
	states(p);
	T(send(p[1], "x", 1, MSG_NOSIGNAL));
	T(read(p[0], b, 16));
	return 0;
}
