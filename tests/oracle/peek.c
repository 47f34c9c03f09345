// SPDX-License-Identifier: GPL-2.0
/* MSG_PEEK, alone and with SO_PEEK_OFF, on streams and datagrams. */
#include "oracle.h"

int main(void)
{
	char b[16] = "";
	int p[2], u[2];

	tcp_pair(AF_INET, p);
	T(recv(p[1], b, 4, MSG_PEEK | MSG_DONTWAIT));
	must(write(p[0], "abcdef", 6));
	need(wait_for(p[1], POLLIN));
	T(recv(p[1], b, 4, MSG_PEEK));
	T(recv(p[1], b, 16, MSG_PEEK));
	T(recv(p[1], NULL, 16, MSG_TRUNC | MSG_PEEK));
	T(recv(p[1], b, 2, 0));
	T(recv(p[1], b, 16, MSG_PEEK));
	say("%.4s", b);
	T(set_int(p[1], SOL_SOCKET, SO_PEEK_OFF, 1));
	T(recv(p[1], b, 1, MSG_PEEK));
	say("%c, offset now %d", b[0], int_option(p[1], SOL_SOCKET, SO_PEEK_OFF));
	T(recv(p[1], b, 1, MSG_PEEK));
	say("%c, offset now %d", b[0], int_option(p[1], SOL_SOCKET, SO_PEEK_OFF));
	T(recv(p[1], b, 1, 0));
	say("%c, offset now %d", b[0], int_option(p[1], SOL_SOCKET, SO_PEEK_OFF));
	close(p[0]);
	need(wait_for(p[1], POLLRDHUP));
	T(set_int(p[1], SOL_SOCKET, SO_PEEK_OFF, -1));
	T(recv(p[1], b, 16, MSG_PEEK));
	T(recv(p[1], b, 16, 0));
	T(recv(p[1], b, 16, MSG_PEEK));

	udp_pair(AF_INET, u);
	must(send(u[0], "first", 5, 0));
	must(send(u[0], "second", 6, 0));
	T(recv(u[1], b, 16, MSG_PEEK));
	T(recv(u[1], b, 2, MSG_PEEK));
	T(recv(u[1], b, 2, MSG_PEEK | MSG_TRUNC));
	T(recv(u[1], b, 16, 0));
	T(recv(u[1], b, 16, MSG_PEEK));
	T(set_int(u[1], SOL_SOCKET, SO_PEEK_OFF, 3));
	T(recv(u[1], b, 16, MSG_PEEK));
	say("%.3s", b);
	T(recv(u[1], b, 16, 0));
	T(recv(u[1], b, 16, MSG_PEEK | MSG_DONTWAIT));
	return 0;
}
