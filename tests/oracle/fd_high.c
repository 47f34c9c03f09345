// SPDX-License-Identifier: GPL-2.0
/* Descriptors with numbers above 1024. */
#include "oracle.h"

int main(void)
{
	struct rlimit r = { 5000, 5000 };
	int u[2], hi, l, c, a, e = must(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 5 };
	char b[8];

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max < 5000 ? r.rlim_max : 5000;
	must(setrlimit(RLIMIT_NOFILE, &r));
	udp_pair(AF_INET, u);
	T(dup2(u[0], 3000));
	T(send(3000, "high", 4, 0));
	T(recv(u[1], b, 8, 0));
	for (int i = 0; i < 2000; i++)
		must(dup(0));
	hi = must(socket(AF_INET, SOCK_DGRAM, 0));
	say("above 1024 %d", hi > 1024);
	T(connect_port(hi, AF_INET, local_port(u[1])));
	l = listener(AF_INET, 4);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));
	a = must(accept(l, NULL, NULL));
	say("consecutive %d %d %d", l - hi, c - hi, a - hi);
	must(epoll_ctl(e, EPOLL_CTL_ADD, a, &ev));
	T(write(c, "hello", 5));
	T(epoll_wait(e, &ev, 1, 1000));
	N(ev.data.u32);
	T(read(a, b, 8));
	T(poll(&(struct pollfd){ 3000, POLLOUT }, 1, 0));
	T(dup2(0, a) == a);
	T(recv(a, b, 8, 0));
	return 0;
}
