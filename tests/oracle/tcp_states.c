// SPDX-License-Identifier: GPL-2.0
/* TCP_INFO through a connection's life, both ends. */
#include "oracle.h"
#include <stddef.h>

static void both(const char *what, int a, int b)
{
	sleep_ms(300);	/* an acknowledgement may be delayed by 200 ms */
	say("%s: %s %s", what, tcp_state(a), tcp_state(b));
}

int main(void)
{
	struct tcp_info i;
	socklen_t len = sizeof(i);
	int l = must(socket(AF_INET, SOCK_STREAM, 0)), c, s, p[2];
	static char data[50000];

	both("fresh", l, l);
	must(bind(l, &(union address){ .in = { .sin_family = AF_INET } }.sa, 16));
	both("bound", l, l);
	must(listen(l, 7));
	both("listening", l, l);
	memset(&i, 0, sizeof(i));
	must(getsockopt(l, IPPROTO_TCP, TCP_INFO, &i, &len));
	say("backlog %u, waiting %u", i.tcpi_sacked, i.tcpi_unacked);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));
	len = sizeof(i);
	must(getsockopt(l, IPPROTO_TCP, TCP_INFO, &i, &len));
	say("backlog %u, waiting %u", i.tcpi_sacked, i.tcpi_unacked);
	s = must(accept(l, NULL, NULL));
	both("accepted", c, s);
	must(send(c, data, sizeof(data), 0));
	must(recv(s, data, sizeof(data), MSG_WAITALL));
	sleep_ms(60);
	len = sizeof(i);
	must(getsockopt(c, IPPROTO_TCP, TCP_INFO, &i, &len));
	say("options %#x unacked %u lost %u retrans %u mss plausible %d rtt known %d acked %d", i.tcpi_options & 7,
	    i.tcpi_unacked, i.tcpi_lost, i.tcpi_retrans, i.tcpi_snd_mss > 30000, i.tcpi_rtt > 0,
	    len >= offsetof(struct tcp_info, tcpi_rcv_space) + 4);
	shutdown(c, SHUT_WR);
	both("client shut", c, s);
	shutdown(s, SHUT_WR);
	both("both shut", c, s);

	tcp_pair(AF_INET, p);
	must(set_int(p[0], IPPROTO_TCP, TCP_LINGER2, -1));
	shutdown(p[0], SHUT_WR);
	both("half", p[0], p[1]);
	close(p[1]);
	both("peer gone", p[0], p[0]);
	return 0;
}
