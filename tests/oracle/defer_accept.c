// SPDX-License-Identifier: GPL-2.0
/* TCP_DEFER_ACCEPT: no accept before there is data. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 4), c, s;
	char b[8];

	T(set_int(l, IPPROTO_TCP, TCP_DEFER_ACCEPT, 5));
	say("rounded to the retransmissions' times %d", int_option(l, IPPROTO_TCP, TCP_DEFER_ACCEPT) >= 5);
	nonblocking(l);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect_port(c, AF_INET, local_port(l)));
	sleep_ms(30);
	say("client %s, listener polled %s", tcp_state(c), polled(l));
	T(accept(l, NULL, NULL));
	T(write(c, "data", 4));
	need(wait_for(l, POLLIN));
	s = must(accept(l, NULL, NULL));
	T(recv(s, b, 8, MSG_DONTWAIT));
	return 0;
}
