// SPDX-License-Identifier: GPL-2.0
/* maxevents, and that everybody gets a turn. */
#include "waiting.h"

#define COUNT 100

int main(void)
{
	int e = must(epoll_create1(0)), u[COUNT], seen[COUNT] = { 0 }, rounds = 0, total = 0, c;
	struct epoll_event ev[10];

	c = must(socket(AF_INET, SOCK_DGRAM, 0));
	for (int i = 0; i < COUNT; i++) {
		union address a;

		u[i] = bound(AF_INET, SOCK_DGRAM);
		add(e, u[i], EPOLLIN, i);
		a = loopback(AF_INET, local_port(u[i]));
		must(sendto(c, "x", 1, 0, &a.sa, sizeof(a.in)));
	}
	while (total < COUNT && rounds < 50) {
		int n = must(epoll_wait(e, ev, 10, 1000));

		rounds++;
		for (int i = 0; i < n; i++) {
			total += !seen[ev[i].data.u64];
			seen[ev[i].data.u64]++;
		}
	}
	say("seen %d in %d rounds", total, rounds);
	return 0;
}
