// SPDX-License-Identifier: GPL-2.0
/* A client that leaves before it is accepted: data, FIN and RST are all still there. */
#include "oracle.h"

int main(void)
{
	struct linger rst = { 1, 0 };
	int l = listener(AF_INET, 4), c, s;
	char b[8];

	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));
	must(write(c, "bye", 3));
	close(c);
	sleep_ms(20);
	s = must(accept(l, NULL, NULL));
	T(read(s, b, 8));
	T(read(s, b, 8));
	say("state %s polled %s", tcp_state(s), polled(s));
	close(s);

	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));
	must(setsockopt(c, SOL_SOCKET, SO_LINGER, &rst, sizeof(rst)));
	close(c);
	sleep_ms(20);
	say("listener polled %s", polled(l));
	s = must(accept(l, NULL, NULL));
	say("state %s polled %s", tcp_state(s), polled(s));
	T(read(s, b, 8));
	T(read(s, b, 8));
	T(getpeername(s, (struct sockaddr *)b, &(socklen_t){ 8 }));
	return 0;
}
