// SPDX-License-Identifier: GPL-2.0
/* Keep-alive options as values, and an idle connection that outlives some probes. */
#include "oracle.h"

int main(void)
{
	int p[2];
	char b[4];

	tcp_pair(AF_INET, p);
	T(set_int(p[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	T(set_int(p[0], IPPROTO_TCP, TCP_KEEPIDLE, 1));
	T(set_int(p[0], IPPROTO_TCP, TCP_KEEPINTVL, 1));
	T(set_int(p[0], IPPROTO_TCP, TCP_KEEPCNT, 2));
	N(int_option(p[0], IPPROTO_TCP, TCP_KEEPIDLE));
	N(int_option(p[0], IPPROTO_TCP, TCP_KEEPINTVL));
	N(int_option(p[0], IPPROTO_TCP, TCP_KEEPCNT));
	sleep_ms(2600);
	say("state %s", tcp_state(p[0]));
	T(write(p[0], "x", 1));
	T(read(p[1], b, 1));
	return 0;
}
