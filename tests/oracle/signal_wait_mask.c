// SPDX-License-Identifier: GPL-2.0
/*
 * The handler that ends a wait with a mask of its own has that mask, and the signals that it lets in come one over the
 * other; the program has its old one afterwards.
 */
#include "oracle.h"

static uint64_t mask(void)
{
	uint64_t now;

	must(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, sizeof(now)));
	return now;
}

static void handler(int sig, siginfo_t *info, void *context)
{
	uint64_t saved;

	(void)info;
	memcpy(&saved, &((ucontext_t *)context)->uc_sigmask, sizeof(saved));
	say("handler of %d: mask %lx, back to %lx", sig, (long)mask(), (long)saved);
}

/* A call with each of these sets: none, and all but SIGUSR1. */
static sigset_t none, most;

#define WAITS(what) do {				\
	sigset_t *s = &none;				\
	raise(SIGUSR1);					\
	T(what);					\
	s = &most;					\
	raise(SIGUSR1);					\
	T(what);					\
	s = &none;					\
	raise(SIGUSR1);					\
	raise(SIGUSR2);					\
	T(what);					\
	printf("mask %lx\n", (long)mask());		\
} while (0)

static void waits(struct pollfd *f, int n)
{
	static const struct timespec second = { 1, 0 }, zero;
	struct epoll_event ev = { .events = EPOLLIN };
	int e = must(epoll_create1(0));
	fd_set set;

	WAITS(ppoll(f, n, &second, s));
	WAITS(ppoll(f, n, &zero, s));
	for (int i = 0; i < n; i++)
		must(epoll_ctl(e, EPOLL_CTL_ADD, f[i].fd, &ev));
	WAITS(epoll_pwait(e, &ev, 1, 1000, s));
	FD_ZERO(&set);
	for (int i = 0; i < n; i++)
		FD_SET(f[i].fd, &set);
	WAITS(pselect(f[n - 1].fd + 1, &set, NULL, NULL, &second, s));
	close(e);
}

static volatile pthread_t waiter;
static volatile pid_t tid;

static void *shoots(void *arg)
{
	(void)arg;
	wait_until_asleep(tid);
	must(kill(getpid(), SIGUSR2));		/* stays blocked */
	must(kill(getpid(), SIGWINCH));		/* is ignored */
	sleep_ms(50);
	pthread_kill(waiter, SIGUSR1);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART };
	int p[2], u = bound(AF_INET, SOCK_DGRAM);
	struct pollfd both[2] = { { .events = POLLIN }, { .events = POLLIN } };
	sigset_t blocked;
	pthread_t t;

	alarm(20);
	sigemptyset(&none);
	sigfillset(&most);
	sigdelset(&most, SIGUSR1);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGSEGV);
	must(sigaction(SIGUSR1, &sa, NULL));
	must(sigaction(SIGUSR2, &sa, NULL));
	must(sigprocmask(SIG_SETMASK, &blocked, NULL));
	must(pipe(p));
	both[0].fd = p[0];
	both[1].fd = u;

	WAITS(sigsuspend(s));
	WAITS(ppoll(NULL, 0, NULL, s));
	WAITS(pselect(0, NULL, NULL, NULL, NULL, s));
	say("the host's");
	waits(both, 1);
	say("the node's");
	waits(both + 1, 1);
	say("both");
	waits(both, 2);

	say("a signal that comes");
	tid = gettid();
	waiter = pthread_self();
	t = spawn(shoots, NULL);
	T(sigsuspend(&most));
	join(t);
	T(syscall(SYS_rt_sigsuspend, &none, 4));
	T(syscall(SYS_rt_sigsuspend, 8, 8));
	T(sigsuspend(&none));
	printf("mask %lx\n", (long)mask());
	return 0;
}
