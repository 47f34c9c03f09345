// SPDX-License-Identifier: GPL-2.0
/* TCP_USER_TIMEOUT and TCP_SYNCNT end a hopeless attempt; ETIMEDOUT arrives on time. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 0), c, fd;
	double start;

	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));	/* fills the queue */
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 1500));
	start = seconds();
	T(connect_port(fd, AF_INET, local_port(l)));
	say("%s", about(start, 1));
	say("state %s", tcp_state(fd));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &(struct timeval){ 0, 300000 }, sizeof(struct timeval)));
	start = seconds();
	T(connect_port(fd, AF_INET, local_port(l)));
	say("%s", about(start, 0.3));
	T(connect_port(fd, AF_INET, local_port(l)));
	return 0;
}
