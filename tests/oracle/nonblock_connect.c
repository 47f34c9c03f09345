// SPDX-License-Identifier: GPL-2.0
/* Non-blocking connect: EINPROGRESS, EALREADY, readiness, outcome. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 0), fd = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), more;

	T(connect_port(fd, AF_INET, local_port(l)));
	need(wait_for(fd, POLLOUT));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	T(connect_port(fd, AF_INET, local_port(l)));
	T(connect_port(fd, AF_INET, local_port(l)));
	say("state %s polled %s", tcp_state(fd), polled(fd));

	/* The queue is full now: this one hangs in the air. */
	fd = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect_port(fd, AF_INET, local_port(l)));
	T(connect_port(fd, AF_INET, local_port(l)));
	sleep_ms(30);
	say("state %s polled %s", tcp_state(fd), polled(fd));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	T(recv(fd, &more, 1, 0));
	T(getpeername(fd, &(struct sockaddr){}, &(socklen_t){ 16 }));
	T(shutdown(fd, SHUT_WR));
	say("state %s", tcp_state(fd));

	/* A closed port: the error comes with the readiness. */
	fd = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect_port(fd, AF_INET, 1));
	need(wait_for(fd, POLLOUT));
	say("polled %s", polled(fd));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	T(recv(fd, &more, 1, 0));

	fd = must(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0));
	l = listener(AF_INET6, 1);
	say("polled, unconnected %s", polled(fd));
	T(connect_port(fd, AF_INET6, local_port(l)));
	need(wait_for(fd, POLLOUT));
	T(send(fd, "x", 1, 0));
	return 0;
}
