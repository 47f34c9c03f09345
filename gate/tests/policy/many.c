// SPDX-License-Identifier: GPL-2.0
/* many.c - large numbers and large sets */
#include "t.h"

#define N	3000

int main(void)
{
	struct rlimit lim = { 8000, 8000 };
	static struct pollfd p[N];
	struct epoll_event ev[64];
	int i, fd, pipefd[2], u[2], ep, n, hits = 0;
	char c;

	T(setrlimit(RLIMIT_NOFILE, &lim));
	udp_pair(u);
	MUST(pipe(pipefd));
	for (i = 0; i < N; i++) {
		fd = i % 2 ? socket(AF_INET, SOCK_DGRAM, 0) : eventfd(0, 0);
		if (fd < 0) {
			printf("%d: %s\n", i, strerror(errno));
			break;
		}
		p[i] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	T(i);
	T(dup2(u[1], 5000));
	T(dup2(pipefd[0], 5001));
	p[0].fd = 5000;
	p[1].fd = 5001;
	T(poll(p, N, 0));
	T(poll(p, N, 20));
	MUST(write(pipefd[1], "x", 1));
	T(poll(p, N, 1000));
	MUST(send(u[0], "x", 1, 0));
	T(poll(p, N, 1000));
	printf("%x %x\n", p[0].revents, p[1].revents);
	ep = MUST(epoll_create1(0));
	for (i = 0; i < N; i++) {
		ev[0] = (struct epoll_event){ .events = EPOLLIN, .data.u64 = i };
		MUST(epoll_ctl(ep, EPOLL_CTL_ADD, p[i].fd, &ev[0]));
	}
	T(n = epoll_wait(ep, ev, 64, 1000));
	for (i = 0; i < n; i++)
		hits += 1 + ev[i].data.u64;
	T(hits);
	T(read(5001, &c, 1));
	T(recv(5000, &c, 1, 0));
	T(epoll_wait(ep, ev, 64, 10));
	uint64_t one = 1;

	for (i = 2; i < N; i += 2)
		MUST(write(p[i].fd, &one, 8));
	T(epoll_wait(ep, ev, 64, 100));
	T(poll(p, N, 100));
	T(close_range(3, 6000, 0));
	T(socket(AF_INET, SOCK_DGRAM, 0));
	T(eventfd(0, 0));
	return 0;
}
