// SPDX-License-Identifier: GPL-2.0
/* accept() and accept4(): errors, flags, address lengths, what is inherited. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 16), fd, s, pair[2];
	union address a;
	socklen_t len = sizeof(a);
	struct linger linger;

	nonblocking(l);
	T(accept(l, NULL, NULL));
	T(accept4(l, NULL, NULL, 0x1));
	T(accept4(l, NULL, NULL, SOCK_NONBLOCK | 0x100));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	T(accept(fd, NULL, NULL));
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(accept(fd, NULL, NULL));
	T(accept(-1, NULL, NULL));
	T(accept(2, NULL, NULL));
	tcp_pair(AF_INET, pair);
	T(accept(pair[0], NULL, NULL));

	must(set_int(l, SOL_SOCKET, SO_KEEPALIVE, 1));
	must(set_int(l, IPPROTO_TCP, TCP_NODELAY, 1));
	must(set_int(l, SOL_SOCKET, SO_RCVBUF, 30000));
	linger = (struct linger){ 1, 7 };
	must(setsockopt(l, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	must(set_int(l, IPPROTO_IP, IP_TOS, 0x10));
	for (int i = 0; i < 8; i++)
		must(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, local_port(l)));

	s = must(accept(l, &a.sa, &len));
	say("len %d address %s", len, address_text(&a));
	say("inherited: nonblock %d keepalive %d nodelay %d rcvbuf %d tos %d",
	    !!(fcntl(s, F_GETFL) & O_NONBLOCK), int_option(s, SOL_SOCKET, SO_KEEPALIVE),
	    int_option(s, IPPROTO_TCP, TCP_NODELAY), int_option(s, SOL_SOCKET, SO_RCVBUF),
	    int_option(s, IPPROTO_IP, IP_TOS));
	len = sizeof(linger);
	must(getsockopt(s, SOL_SOCKET, SO_LINGER, &linger, &len));
	say("linger %d %d", linger.l_onoff, linger.l_linger);

	s = must(accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
	say("nonblock %d cloexec %d", !!(fcntl(s, F_GETFL) & O_NONBLOCK), fcntl(s, F_GETFD));
	s = must(accept4(l, NULL, NULL, 0));
	say("nonblock %d cloexec %d", !!(fcntl(s, F_GETFL) & O_NONBLOCK), fcntl(s, F_GETFD));

	memset(&a, 0xee, sizeof(a));
	len = 6;
	OK(accept(l, &a.sa, &len));
	say("len %d family %d untouched %#x", len, a.sa.sa_family, ((unsigned char *)&a)[6]);
	len = 0;
	OK(accept(l, &a.sa, &len));
	N(len);
	len = -1;
	OK(accept(l, &a.sa, &len));
	len = sizeof(a);
	OK(accept(l, NULL, &len));
	OK(accept(l, &a.sa, NULL));
	OK(accept(l, NULL, NULL));	/* how many did the errors swallow? */
	OK(accept(l, NULL, NULL));
	return 0;
}
