// SPDX-License-Identifier: GPL-2.0
/* listen() on sockets in every state, and what a full queue does. */
#include "oracle.h"

int main(void)
{
	int fd, pair[2], l, full = 0, c[16];
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(listen(fd, 1));
	fd = must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
	T(listen(fd, 1));
	tcp_pair(AF_INET, pair);
	T(listen(pair[0], 1));
	T(listen(pair[1], 1));
	T(listen(-1, 1));
	T(listen(0, 1));
	l = must(socket(AF_INET, SOCK_STREAM, 0));
	T(listen(l, -1));
	T(listen(l, 0));
	T(listen(l, 1000000));
	T(listen(l, 1));
	T(connect_port(l, AF_INET, local_port(l)));
	T(getpeername(l, (struct sockaddr *)&sin, &len));
	T(send(l, "x", 1, MSG_NOSIGNAL));
	T(recv(l, &sin, 1, 0));
	say("polled %s", polled(l));
	N(int_option(l, SOL_SOCKET, SO_ACCEPTCONN));
	T(shutdown(l, SHUT_WR));
	T(shutdown(l, SHUT_RD));
	say("polled %s state %s", polled(l), tcp_state(l));
	N(int_option(l, SOL_SOCKET, SO_ACCEPTCONN));
	T(listen(l, 1));
	say("state %s", tcp_state(l));

	/* Backlog 1: two connections are taken, later ones stay in SYN_SENT. */
	l = listener(AF_INET, 1);
	for (int i = 0; i < 5; i++) {
		c[i] = must(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
		connect_port(c[i], AF_INET, local_port(l));
	}
	sleep_ms(50);
	for (int i = 0; i < 5; i++)
		full += !strcmp(tcp_state(c[i]), "ESTABLISHED");
	say("established %d of 5", full);
	for (int i = 0; i < 2; i++)
		OK(accept(l, NULL, NULL));
	nonblocking(l);
	OK(accept(l, NULL, NULL));

	/* Closing a listener resets whoever it had not accepted. */
	l = listener(AF_INET, 4);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(fd, AF_INET, local_port(l)));
	close(l);
	T(recv(fd, &sin, 1, 0));
	say("state %s", tcp_state(fd));
	return 0;
}
