// SPDX-License-Identifier: GPL-2.0
/* SO_ERROR is handed out once. */
#include "oracle.h"

int main(void)
{
	struct linger l = { 1, 0 };
	int p[2], fd;
	char b[4];

	fd = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
	T(connect_port(fd, AF_INET, 1));
	need(wait_for(fd, POLLOUT));
	say("polled %s", polled(fd));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	say("polled %s", polled(fd));
	T(connect_port(fd, AF_INET, 1));
	need(wait_for(fd, POLLOUT));
	T(connect_port(fd, AF_INET, 1));

	tcp_pair(AF_INET, p);
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	close(p[1]);
	need(wait_for(p[0], POLLIN));
	N(int_option(p[0], SOL_SOCKET, SO_ERROR));
	N(int_option(p[0], SOL_SOCKET, SO_ERROR));
	T(recv(p[0], b, 4, 0));
	T(send(p[0], b, 4, MSG_NOSIGNAL));

	tcp_pair(AF_INET, p);
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &l, sizeof(l)));
	close(p[1]);
	need(wait_for(p[0], POLLIN));
	T(recv(p[0], b, 4, 0));		/* the same error, by way of recv() */
	N(int_option(p[0], SOL_SOCKET, SO_ERROR));
	T(recv(p[0], b, 4, 0));
	T(set_int(p[0], SOL_SOCKET, SO_ERROR, 1));
	return 0;
}
