// SPDX-License-Identifier: GPL-2.0
/* shutdown() in every way on every kind: results, readiness, what calls then say. */
#include "oracle.h"

static void look(const char *who, int fd)
{
	char b[8];

	say("  %s: polled %s", who, polled(fd));
	say("  %s: recv %zd %s", who, recv(fd, b, 8, MSG_DONTWAIT), "");
	if (recv(fd, b, 8, MSG_DONTWAIT) < 0)
		say("  %s: recv %s", who, ename(errno));
	if (send(fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		say("  %s: send %s", who, ename(errno));
	else
		say("  %s: sent", who);
}

int main(void)
{
	static const int hows[] = { SHUT_RD, SHUT_WR, SHUT_RDWR, 3, -1 };
	int p[2];

	for (size_t h = 0; h < ARRAY_SIZE(hows); h++) {
		int fd;

		say("how %d", hows[h]);
		tcp_pair(AF_INET, p);
		must(write(p[1], "in flight", 9));
		need(wait_for(p[0], POLLIN));
		T(shutdown(p[0], hows[h]));
		sleep_ms(100);
		say("  states %s %s", tcp_state(p[0]), tcp_state(p[1]));
		look("self", p[0]);
		look("peer", p[1]);
		sleep_ms(100);
		look("self again", p[0]);
		T(shutdown(p[0], hows[h]));
		close(p[0]);
		close(p[1]);

		udp_pair(AF_INET, p);
		T(shutdown(p[0], hows[h]));
		look("udp self", p[0]);
		look("udp peer", p[1]);
		fd = must(socket(AF_INET, SOCK_STREAM, 0));
		T(shutdown(fd, hows[h]));
		say("  fresh polled %s", polled(fd));
		fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		T(shutdown(fd, hows[h]));
		fd = listener(AF_INET, 1);
		T(shutdown(fd, hows[h]));
		say("  listener polled %s state %s", polled(fd), tcp_state(fd));
	}
	T(shutdown(-1, 0));
	T(shutdown(0, 0));
	return 0;
}
