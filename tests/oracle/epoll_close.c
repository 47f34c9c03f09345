// SPDX-License-Identifier: GPL-2.0
/* A registration goes with the last descriptor of its file: close, dup, and numbers used again. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), u[2], d, pipes[2], pd;
	char b[4];

	udp_pair(AF_INET, u);
	add(e, u[0], EPOLLIN, 1);
	must(send(u[1], "x", 1, 0));
	waited("ready", e, 1000);
	d = must(dup(u[0]));
	T(control(e, EPOLL_CTL_ADD, d, EPOLLIN, 2));
	waited("both numbers", e, 0);
	close(u[0]);
	waited("one number closed, both report", e, 0);
	T(control(e, EPOLL_CTL_MOD, u[0], EPOLLIN, 9));
	close(d);
	waited("both closed", e, 0);

	/* The number returns with another socket: nothing of the old one. */
	u[0] = bound(AF_INET, SOCK_DGRAM);
	T(control(e, EPOLL_CTL_MOD, u[0], EPOLLIN, 9));
	T(control(e, EPOLL_CTL_ADD, u[0], EPOLLIN, 3));
	waited("new socket", e, 0);
	close(u[0]);
	T(control(e, EPOLL_CTL_DEL, u[0], 0, 0));

	/* The same with a host descriptor. */
	must(pipe(pipes));
	add(e, pipes[0], EPOLLIN, 4);
	must(write(pipes[1], "x", 1));
	waited("pipe", e, 1000);
	pd = must(dup(pipes[0]));
	close(pipes[0]);
	waited("pipe closed, duplicate open", e, 100);
	T(read(pd, b, 4));
	waited("read by way of the duplicate", e, 20);
	close(pd);
	must(pipe(pipes));
	waited("new pipe", e, 20);
	T(control(e, EPOLL_CTL_ADD, pipes[0], EPOLLIN, 5));
	must(write(pipes[1], "x", 1));
	waited("new pipe, written", e, 1000);

	/* The set itself closed and opened again. */
	close(e);
	e = must(epoll_create1(0));
	waited("new set", e, 0);
	add(e, pipes[0], EPOLLIN, 6);
	waited("pipe in it", e, 1000);
	return 0;
}
