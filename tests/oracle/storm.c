// SPDX-License-Identifier: GPL-2.0
/* A storm of short non-blocking exchanges in one event loop: connect, ask, answer, close. */
#include "oracle.h"

#define TOTAL 3000
#define AT_ONCE 50

enum { LISTENER, CLIENT, SERVER };

int main(void)
{
	int l = listener(AF_INET, 256), e = must(epoll_create1(0)), port = local_port(l);
	int started = 0, finished = 0, served = 0, errors = 0;
	struct epoll_event ev[64], add = { .events = EPOLLIN, .data.u64 = (uint64_t)LISTENER << 32 | l };

	nonblocking(l);
	must(epoll_ctl(e, EPOLL_CTL_ADD, l, &add));
	while (finished < TOTAL) {
		int n;

		while (started < TOTAL && started - finished < AT_ONCE) {
			int c = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));

			if (connect_port(c, AF_INET, port) && errno != EINPROGRESS)
				errors++;
			add.events = EPOLLOUT;
			add.data.u64 = (uint64_t)CLIENT << 32 | c;
			must(epoll_ctl(e, EPOLL_CTL_ADD, c, &add));
			started++;
		}
		n = must(epoll_wait(e, ev, 64, 5000));
		need(n > 0);
		for (int i = 0; i < n; i++) {
			int fd = (uint32_t)ev[i].data.u64, kind = ev[i].data.u64 >> 32;
			char b[16];

			if (kind == LISTENER) {
				int s = accept4(l, NULL, NULL, SOCK_NONBLOCK);

				if (s < 0)
					continue;
				add.events = EPOLLIN;
				add.data.u64 = (uint64_t)SERVER << 32 | s;
				must(epoll_ctl(e, EPOLL_CTL_ADD, s, &add));
			} else if (kind == SERVER) {
				ssize_t r = read(fd, b, sizeof(b));

				if (r == 4 && write(fd, "pong", 4) == 4)
					served++;
				else
					errors++;
				close(fd);
			} else if (ev[i].events & EPOLLOUT && !(ev[i].events & EPOLLIN) && !(ev[i].events & EPOLLERR)) {
				errors += write(fd, "ping", 4) != 4;
				add.events = EPOLLIN;
				add.data.u64 = (uint64_t)CLIENT << 32 | fd;
				must(epoll_ctl(e, EPOLL_CTL_MOD, fd, &add));
			} else {
				errors += read(fd, b, sizeof(b)) != 4;
				close(fd);
				finished++;
			}
		}
	}
	N(finished);
	N(served);
	N(errors);
	return 0;
}
