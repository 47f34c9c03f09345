// SPDX-License-Identifier: GPL-2.0
/* SO_TIMESTAMP, SO_TIMESTAMPNS and SO_TIMESTAMPING, SIOCGSTAMP. */
#include "cmsg.h"
#include <linux/net_tstamp.h>
#include <linux/sockios.h>

int main(void)
{
	int u[2], p[2];
	struct timeval tv;

	udp_pair(AF_INET, u);
	T(ioctl(u[1], SIOCGSTAMP, &tv));
	must(set_int(u[1], SOL_SOCKET, SO_TIMESTAMP, 1));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);
	must(set_int(u[1], SOL_SOCKET, SO_TIMESTAMPNS, 1));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);
	say("options now %d %d", int_option(u[1], SOL_SOCKET, SO_TIMESTAMP),
	    int_option(u[1], SOL_SOCKET, SO_TIMESTAMPNS));
	must(set_int(u[1], SOL_SOCKET, SO_TIMESTAMPNS, 0));
	T(set_int(u[1], SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_RX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE));
	sleep_ms(100);	/* stamping is switched on in the background */
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);

	/* Of what one sends: it comes back by way of the error queue. */
	T(set_int(u[0], SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_TX_SOFTWARE |
		  SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY));
	must(send(u[0], "abc", 3, 0));
	sleep_ms(5);
	say("polled %s", polled(u[0]));
	receive(u[0], MSG_ERRQUEUE | MSG_DONTWAIT);
	receive(u[0], MSG_ERRQUEUE | MSG_DONTWAIT);
	receive(u[0], MSG_ERRQUEUE | MSG_DONTWAIT);

	tcp_pair(AF_INET, p);
	T(set_int(p[0], SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_TX_ACK | SOF_TIMESTAMPING_SOFTWARE |
		  SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY));
	must(write(p[0], "abc", 3));
	sleep_ms(60);
	receive(p[0], MSG_ERRQUEUE | MSG_DONTWAIT);
	T(set_int(p[0], SOL_SOCKET, SO_TIMESTAMPING, 1 << 25));
	return 0;
}
