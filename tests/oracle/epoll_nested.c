// SPDX-License-Identifier: GPL-2.0
/* An epoll set inside another, inside poll and select; with a host descriptor at the bottom. */
#include "waiting.h"

int main(void)
{
	int outer = must(epoll_create1(0)), inner = must(epoll_create1(0)), u[2], pipes[2];
	fd_set set;
	char b[4];

	udp_pair(AF_INET, u);
	must(pipe(pipes));
	add(outer, inner, EPOLLIN, 1);
	add(inner, u[0], EPOLLIN, 2);
	waited("quiet", outer, 0);
	must(send(u[1], "x", 1, 0));
	waited("outer", outer, 1000);
	waited("inner", inner, 0);
	say("poll of the inner: %s", polled(inner));
	FD_ZERO(&set);
	FD_SET(outer, &set);
	T(select(outer + 1, &set, NULL, NULL, &(struct timeval){ 1, 0 }));
	must(recv(u[0], b, 4, 0));
	waited("read", outer, 0);
	say("poll of the outer: %s", polled(outer));
	add(inner, pipes[0], EPOLLIN, 3);
	must(write(pipes[1], "x", 1));
	waited("outer, by the pipe", outer, 1000);
	waited("inner, by the pipe", inner, 0);
	must(read(pipes[0], b, 4));
	waited("outer", outer, 20);
	T(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLET, 4));
	must(send(u[1], "x", 1, 0));
	waited("outer, edge", outer, 1000);
	waited("outer, edge again", outer, 0);
	must(send(u[1], "x", 1, 0));
	waited("outer, new edge", outer, 1000);
	close(inner);
	waited("inner closed", outer, 0);
	return 0;
}
