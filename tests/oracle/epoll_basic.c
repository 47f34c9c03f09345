// SPDX-License-Identifier: GPL-2.0
/* Level, edge and one-shot triggering on a TCP socket. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), p[2];
	char b[8];

	tcp_pair(AF_INET, p);
	add(e, p[0], EPOLLIN, 0xdeadbeefcafef00dULL);
	waited("quiet", e, 0);
	must(write(p[1], "abcd", 4));
	waited("level", e, 1000);
	waited("level again", e, 0);
	T(read(p[0], b, 2));
	waited("half read", e, 0);
	T(read(p[0], b, 2));
	waited("all read", e, 0);
	T(control(e, EPOLL_CTL_MOD, p[0], EPOLLOUT, 1));
	waited("out", e, 0);
	waited("out again", e, 0);
	T(control(e, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLOUT | EPOLLET, 2));
	waited("edge: the MOD itself", e, 0);
	waited("edge again", e, 0);
	must(write(p[1], "ab", 2));
	waited("edge, data", e, 1000);
	waited("edge, unread", e, 0);
	must(write(p[1], "cd", 2));
	waited("edge, more data", e, 1000);
	T(read(p[0], b, 1));
	waited("edge, partly read", e, 0);
	must(recv(p[0], b, 8, 0));
	T(control(e, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 3));
	must(write(p[1], "ab", 2));
	waited("one shot", e, 1000);
	waited("one shot, spent", e, 0);
	must(write(p[1], "cd", 2));
	waited("one shot, more data", e, 20);
	T(control(e, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLONESHOT, 4));
	waited("one shot, armed again", e, 0);
	T(control(e, EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLRDHUP | EPOLLET, 5));
	waited("armed", e, 0);
	must(shutdown(p[1], SHUT_WR));
	waited("half closed", e, 1000);
	T(control(e, EPOLL_CTL_MOD, p[0], 0, 6));
	waited("no events asked", e, 0);
	close(p[1]);
	must(send(p[0], "x", 1, MSG_NOSIGNAL));
	waited("reset: unasked all the same", e, 1000);
	T(control(e, EPOLL_CTL_DEL, p[0], 0, 0));
	waited("deleted", e, 0);
	return 0;
}
