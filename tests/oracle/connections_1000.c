// SPDX-License-Identifier: GPL-2.0
/* A thousand connections at once in one epoll set; each is spoken to. */
#include "oracle.h"

#define COUNT 1000

int main(void)
{
	struct rlimit r;
	static int c[COUNT], s[COUNT];
	static struct epoll_event ev[COUNT];
	int l = listener(AF_INET, 512), e = must(epoll_create1(0)), answered = 0, total = 0, ends = 0;
	char b[8];

	must(getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = r.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &r));
	for (int i = 0; i < COUNT; i++) {
		struct epoll_event add = { .events = EPOLLIN, .data.u32 = i };

		c[i] = must(socket(AF_INET, SOCK_STREAM, 0));
		must(connect_port(c[i], AF_INET, local_port(l)));
		s[i] = must(accept(l, NULL, NULL));
		must(epoll_ctl(e, EPOLL_CTL_ADD, s[i], &add));
	}
	for (int i = 0; i < COUNT; i++)
		must(write(c[i], &i, 4));
	while (total < COUNT) {
		int n = must(epoll_wait(e, ev, COUNT, 5000));

		need(n > 0);
		for (int i = 0; i < n; i++) {
			int who = -1;

			must(read(s[ev[i].data.u32], &who, 4));
			need(who == (int)ev[i].data.u32);
			must(write(s[who], &who, 4));
			total++;
		}
	}
	for (int i = 0; i < COUNT; i++) {
		int who = -1;

		must(recv(c[i], &who, 4, MSG_WAITALL));
		answered += who == i;
		close(c[i]);
	}
	while (ends < COUNT) {
		int n = must(epoll_wait(e, ev, COUNT, 5000));

		need(n > 0);
		for (int i = 0; i < n; i++) {
			need(read(s[ev[i].data.u32], b, 8) == 0);
			must(close(s[ev[i].data.u32]));
			ends++;
		}
	}
	N(answered);
	N(ends);
	return 0;
}
