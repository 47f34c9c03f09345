// SPDX-License-Identifier: GPL-2.0
/* MSG_WAITALL: until full, until FIN, until an error, not with MSG_DONTWAIT; SO_RCVLOWAT. */
#include "oracle.h"

static int p[2];

static void *slowly(void *arg)
{
	for (int i = 0; i < 5; i++) {
		sleep_ms(10);
		must(write(p[0], "abcd", 4));
	}
	sleep_ms(10);
	if (arg)
		shutdown(p[0], SHUT_WR);
	return NULL;
}

int main(void)
{
	static char b[64];
	pthread_t t;

	tcp_pair(AF_INET, p);
	t = spawn(slowly, NULL);
	T(recv(p[1], b, 20, MSG_WAITALL));
	join(t);
	t = spawn(slowly, p);
	T(recv(p[1], b, 64, MSG_WAITALL));
	T(recv(p[1], b, 64, MSG_WAITALL));
	join(t);
	tcp_pair(AF_INET, p);
	must(write(p[0], "abc", 3));
	need(wait_for(p[1], POLLIN));
	T(recv(p[1], b, 10, MSG_WAITALL | MSG_DONTWAIT));
	T(recv(p[1], b, 10, MSG_WAITALL | MSG_DONTWAIT));
	must(write(p[0], "abc", 3));
	need(wait_for(p[1], POLLIN));
	t = spawn(slowly, NULL);
	T(recv(p[1], b, 10, MSG_WAITALL | MSG_PEEK) >= 3);
	join(t);
	T(recv(p[1], b, 23, MSG_WAITALL));

	T(set_int(p[1], SOL_SOCKET, SO_RCVLOWAT, 10));
	must(write(p[0], "abc", 3));
	sleep_ms(20);
	say("below the mark: polled %s", polled(p[1]));
	t = spawn(slowly, NULL);
	T(read(p[1], b, 64) >= 10);
	join(t);
	return 0;
}
