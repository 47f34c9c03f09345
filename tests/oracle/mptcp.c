// SPDX-License-Identifier: GPL-2.0
/* MPTCP: a connection on loopback, its options, and the fallback to TCP. */
#include "oracle.h"

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

int main(void)
{
	int l = socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP), c, s, is = -1;
	union address a = loopback(AF_INET, 0);
	socklen_t len = sizeof(is);
	char b[16] = "";

	if (l < 0)
		skip("MPTCP is not in this kernel");
	T(bind(l, &a.sa, sizeof(a.in)));
	T(listen(l, 4));
	for (int plain = 0; plain < 2; plain++) {
		c = must(socket(AF_INET, SOCK_STREAM, plain ? 0 : IPPROTO_MPTCP));
		T(connect_port(c, AF_INET, local_port(l)));
		s = must(accept(l, NULL, NULL));
		T(send(c, "mp", 2, 0));
		T(recv(s, b, 16, 0));
		T(send(s, "back", 4, 0));
		T(recv(c, b, 16, 0));
		N(int_option(c, SOL_SOCKET, SO_PROTOCOL));
		T(getsockopt(s, IPPROTO_TCP, 43 /* TCP_IS_MPTCP */, &is, &len));
		N(is);
		T(set_int(c, IPPROTO_TCP, TCP_NODELAY, 1));
		T(shutdown(c, SHUT_WR));
		T(recv(s, b, 16, 0));
		say("polled %s", polled(s));
		T(close(s));
		T(recv(c, b, 16, 0));
		close(c);
	}
	T(listen(must(socket(AF_INET6, SOCK_STREAM, IPPROTO_MPTCP)), 1));
	return 0;
}
