// SPDX-License-Identifier: GPL-2.0
/* SCTP: a one-to-one association on loopback. */
#include "oracle.h"

int main(void)
{
	int l = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), c, s;
	union address a = loopback(AF_INET, 0);
	char b[16] = "";

	if (l < 0) {
		if (errno == EPROTONOSUPPORT || errno == ESOCKTNOSUPPORT)
			skip("SCTP is not in this kernel");
		need(l >= 0);
	}
	T(bind(l, &a.sa, sizeof(a.in)));
	T(listen(l, 4));
	c = must(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
	T(connect_port(c, AF_INET, local_port(l)));
	s = must(accept(l, NULL, NULL));
	T(send(c, "chunk", 5, 0));
	T(recv(s, b, 16, 0));
	say("%s", b);
	T(send(s, "one", 3, 0));
	T(send(s, "two", 3, 0));
	T(recv(c, b, 16, 0));	/* messages keep their bounds */
	T(recv(c, b, 16, 0));
	T(close(c));
	T(recv(s, b, 16, 0));
	OK(socket(AF_INET, SOCK_SEQPACKET, IPPROTO_SCTP));
	OK(socket(AF_INET6, SOCK_STREAM, IPPROTO_SCTP));
	return 0;
}
