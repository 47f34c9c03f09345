// SPDX-License-Identifier: GPL-2.0
/* A closed port answers with ICMP: connected sockets hear of it, others do not. */
#include "oracle.h"

static void family(int f)
{
	int gone = bound(f, SOCK_DGRAM), port = local_port(gone), fd, e = must(epoll_create1(0));
	union address a = loopback(f, port);
	struct epoll_event ev = { .events = EPOLLIN };
	char b[8];

	close(gone);
	fd = must(socket(f, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	T(sendto(fd, "x", 1, 0, &a.sa, address_len(&a)));
	T(sendto(fd, "x", 1, 0, &a.sa, address_len(&a)));
	T(recv(fd, b, 8, 0));
	must(connect(fd, &a.sa, address_len(&a)));
	must(epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev));
	T(send(fd, "x", 1, 0));
	sleep_ms(5);
	say("polled %s", polled(fd));
	T(epoll_wait(e, &ev, 1, 0));
	say("epoll %s", events(ev.events));
	T(recv(fd, b, 8, 0));
	T(recv(fd, b, 8, 0));
	T(send(fd, "x", 1, 0));
	T(send(fd, "x", 1, 0));
	T(send(fd, "x", 1, 0));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	must(fcntl(fd, F_SETFL, 0));
	T(send(fd, "x", 1, 0));
	T(recv(fd, b, 8, 0));	/* blocking: the error ends the wait */
}

int main(void)
{
	family(AF_INET);
	family(AF_INET6);
	return 0;
}
