// SPDX-License-Identifier: GPL-2.0
/* Edge triggering and one-shot of host descriptors that share a set with sockets. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), pipes[2], ux[2], udp[2], ev = must(eventfd(0, EFD_NONBLOCK));
	uint64_t value = 1;
	char b[16];

	udp_pair(AF_INET, udp);
	must(pipe(pipes));
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ux));
	add(e, udp[0], EPOLLIN | EPOLLET, 1);
	add(e, pipes[0], EPOLLIN | EPOLLET, 2);
	add(e, ux[0], EPOLLIN | EPOLLONESHOT, 3);
	add(e, ev, EPOLLIN | EPOLLET, 4);
	waited("quiet", e, 20);
	must(write(pipes[1], "ab", 2));
	waited("pipe edge", e, 1000);
	waited("pipe unread", e, 20);
	must(write(pipes[1], "cd", 2));
	waited("pipe, more", e, 1000);
	must(read(pipes[0], b, 1));
	waited("pipe, partly read", e, 20);
	must(read(pipes[0], b, 16));
	must(write(pipes[1], "ef", 2));
	waited("pipe, anew", e, 1000);

	must(write(ux[1], "x", 1));
	waited("unix, one shot", e, 1000);
	must(write(ux[1], "x", 1));
	waited("unix, spent", e, 20);
	T(control(e, EPOLL_CTL_MOD, ux[0], EPOLLIN | EPOLLONESHOT, 33));
	waited("unix, armed", e, 1000);
	T(control(e, EPOLL_CTL_MOD, ux[0], EPOLLIN | EPOLLOUT, 34));
	waited("unix, level, both", e, 1000);
	waited("unix, level, still", e, 1000);
	must(read(ux[0], b, 16));
	T(control(e, EPOLL_CTL_MOD, ux[0], EPOLLIN, 34));
	waited("unix, read", e, 20);

	must(write(ev, &value, 8));
	waited("eventfd edge", e, 1000);
	waited("eventfd unread", e, 20);
	must(write(ev, &value, 8));
	waited("eventfd, written again", e, 1000);
	must(send(udp[1], "x", 1, 0));
	waited("udp edge", e, 1000);
	waited("udp unread", e, 20);
	must(send(udp[1], "x", 1, 0));
	waited("udp, another", e, 1000);
	T(control(e, EPOLL_CTL_DEL, pipes[0], 0, 0));
	must(write(pipes[1], "gh", 2));
	waited("pipe deleted", e, 20);
	add(e, pipes[0], EPOLLIN | EPOLLET, 5);
	waited("pipe added again, full", e, 1000);
	close(ux[1]);
	waited("unix peer closed", e, 1000);
	return 0;
}
