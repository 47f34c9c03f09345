// SPDX-License-Identifier: GPL-2.0
/* TCP Fast Open without cookies: data in the SYN; and its fallbacks. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 8), c, s;
	union address a = loopback(AF_INET, local_port(l));
	char b[16] = "";
	FILE *f = fopen("/proc/sys/net/ipv4/tcp_fastopen", "w");

	need(f && fputs("519", f) > 0 && !fclose(f));	/* client, server, no cookies */
	T(set_int(l, IPPROTO_TCP, TCP_FASTOPEN, 16));
	N(int_option(l, IPPROTO_TCP, TCP_FASTOPEN));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(sendto(c, "hello", 5, MSG_FASTOPEN, &a.sa, sizeof(a.in)));
	s = must(accept(l, NULL, NULL));
	T(recv(s, b, 16, MSG_DONTWAIT));
	say("%s", b);
	T(send(s, "back", 4, 0));
	T(recv(c, b, 16, 0));
	T(sendto(c, "x", 1, MSG_FASTOPEN, &a.sa, sizeof(a.in)));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(sendto(c, "x", 1, MSG_FASTOPEN, NULL, 0));
	T(set_int(c, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1));
	T(connect(c, &a.sa, sizeof(a.in)));
	say("state before any data %s", tcp_state(c));
	T(write(c, "later", 5));
	s = must(accept(l, NULL, NULL));
	T(recv(s, b, 16, 0));
	l = listener(AF_INET, 8);	/* a server that doesn't */
	a.in.sin_port = htons(local_port(l));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(sendto(c, "plain", 5, MSG_FASTOPEN, &a.sa, sizeof(a.in)));
	s = must(accept(l, NULL, NULL));
	T(recv(s, b, 16, 0));
	return 0;
}
