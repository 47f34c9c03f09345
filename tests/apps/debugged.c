// SPDX-License-Identifier: GPL-2.0
/*
 * debugged - talks to itself; ends with 5, waits ("wait") or dies of a signal while it waits ("signal")
 */
#include "../oracle/oracle.h"

static int total;

__attribute__((noinline)) void work(int pair[2], int turn)
{
	char b[8];

	must(send(pair[0], "abc", 3, 0));
	total += must(recv(pair[1], b, sizeof(b), 0)) + turn;
}

__attribute__((noinline)) void wait_for_more(int pair[2])
{
	char b[8];

	say("waiting");
	say("recv: %s", recv(pair[1], b, sizeof(b), 0) < 0 ? ename(errno) : "data");
}

static void signal_later(void)
{
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec when = { .it_value = { .tv_nsec = 300000000 } };
	timer_t timer;

	must(timer_create(CLOCK_MONOTONIC, &how, &timer));
	must(timer_settime(timer, 0, &when, NULL));
}

int main(int argc, char **argv)
{
	int pair[2];

	udp_pair(AF_INET, pair);
	for (int i = 0; i < 20; i++)
		work(pair, i);
	say("total %d", total);
	if (argc > 1) {
		if (!strcmp(argv[1], "signal"))
			signal_later();
		wait_for_more(pair);
	}
	return 5;
}
