// SPDX-License-Identifier: GPL-2.0
/* Urgent data: MSG_OOB, SIOCATMARK, SO_OOBINLINE, readiness. */
#include "oracle.h"

static int mark(int fd)
{
	int at = -1;

	must(ioctl(fd, SIOCATMARK, &at));
	return at;
}

int main(void)
{
	char b[16] = "";
	int p[2], u = bound(AF_INET, SOCK_DGRAM), e = must(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLPRI };

	tcp_pair(AF_INET, p);
	must(epoll_ctl(e, EPOLL_CTL_ADD, p[1], &ev));
	T(recv(p[1], b, 1, MSG_OOB | MSG_DONTWAIT));
	T(send(p[0], "abc", 3, 0));
	T(send(p[0], "de!", 3, MSG_OOB));
	T(send(p[0], "fgh", 3, 0));
	sleep_ms(20);
	say("polled %s", polled(p[1]));
	T(epoll_wait(e, &ev, 1, 0));
	say("epoll %s", events(ev.events));
	N(mark(p[1]));
	T(recv(p[1], b, 16, 0));	/* stops at the mark */
	N(mark(p[1]));
	T(recv(p[1], b, 16, MSG_OOB));
	say("%c", b[0]);
	T(recv(p[1], b, 16, MSG_OOB));
	T(recv(p[1], b, 16, 0));
	say("%.3s", b);
	say("polled %s", polled(p[1]));
	N(mark(p[1]));

	T(set_int(p[1], SOL_SOCKET, SO_OOBINLINE, 1));
	T(send(p[0], "x", 1, 0));
	T(send(p[0], "y", 1, MSG_OOB));
	T(send(p[0], "z", 1, 0));
	sleep_ms(20);
	T(recv(p[1], b, 16, MSG_OOB));
	T(recv(p[1], b, 16, 0));
	N(mark(p[1]));
	T(recv(p[1], b, 16, 0));
	say("%.2s", b);

	T(send(u, "x", 1, MSG_OOB));
	T(recv(u, b, 1, MSG_OOB | MSG_DONTWAIT));
	T(ioctl(u, SIOCATMARK, b));
	return 0;
}
