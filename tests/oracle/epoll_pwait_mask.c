// SPDX-License-Identifier: GPL-2.0
/* epoll_pwait, ppoll and pselect swap the signal mask for the wait alone. */
#include "oracle.h"

static volatile sig_atomic_t got;

static void on_signal(int signo)
{
	got = signo;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	int e = must(epoll_create1(0)), u = bound(AF_INET, SOCK_DGRAM);
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd f = { u, POLLIN };
	sigset_t block, none, now;
	fd_set set;

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	must(sigaction(SIGUSR1, &sa, NULL));
	must(sigprocmask(SIG_BLOCK, &block, NULL));
	must(epoll_ctl(e, EPOLL_CTL_ADD, u, &ev));

	kill(getpid(), SIGUSR1);
	T(epoll_wait(e, &ev, 1, 20));
	N(got);
	T(epoll_pwait(e, &ev, 1, 2000, &none));
	N(got);
	got = 0;
	must(sigprocmask(0, NULL, &now));
	say("still blocked %d", sigismember(&now, SIGUSR1));

	kill(getpid(), SIGUSR1);
	T(poll(&f, 1, 20));
	N(got);
	T(ppoll(&f, 1, &(struct timespec){ 2, 0 }, &none));
	N(got);
	got = 0;

	kill(getpid(), SIGUSR1);
	FD_ZERO(&set);
	FD_SET(u, &set);
	T(pselect(u + 1, &set, NULL, NULL, &(struct timespec){ 2, 0 }, &none));
	N(got);
	got = 0;
	must(sigprocmask(0, NULL, &now));
	say("still blocked %d", sigismember(&now, SIGUSR1));

	/* The other way: blocked during the wait, delivered after it. */
	must(sigprocmask(SIG_UNBLOCK, &block, NULL));
	must(epoll_pwait(e, &ev, 1, 0, &block) + 1);
	kill(getpid(), SIGUSR1);
	N(got);
	return 0;
}
