// SPDX-License-Identifier: GPL-2.0
/* A signal that only ppoll()'s mask unblocks stays pending if ppoll() has a result anyway: in any thread, from any sender. */
#include "oracle.h"

static int u[2];

static void handler(int sig)
{
	(void)sig;
	say("the handler");
}

static void *polls(void *arg)
{
	struct pollfd f = { u[0], POLLIN, 0 };
	sigset_t none, pending;

	sigemptyset(&none);
	must(kill(getpid(), SIGUSR1));
	say("%s", (char *)arg);
	T(ppoll(&f, 1, NULL, &none));
	must(sigpending(&pending));
	T(sigismember(&pending, SIGUSR1));
	must(sigprocmask(SIG_SETMASK, &none, NULL));
	sigaddset(&none, SIGUSR1);
	must(sigprocmask(SIG_SETMASK, &none, NULL));
	return NULL;
}

int main(void)
{
	sigset_t set;

	signal(SIGUSR1, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	udp_pair(AF_INET, u);
	must(send(u[1], "x", 1, 0));
	sleep_ms(20);
	polls("the first thread");
	join(spawn(polls, "another"));
	return 0;
}
