// SPDX-License-Identifier: GPL-2.0
/* A signal that comes while a thread is on its way into fork() leaves no signal blocked, in it or in its child. */
#include "oracle.h"
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CALLS	150000	/* that make no child, but are on their way to: a hundred times as many can be tried */
#define FORKS	100

static volatile int over, forking, handled;
static pthread_t forker;

static void on_usr1(int sig)
{
	(void)sig;
	handled++;
}

/* The next when the last has been seen to, at all distances from the call. */
static void *shoot(void *arg)
{
	volatile int i, pause = 0;
	int before;

	while (!over) {
		before = handled;
		pthread_kill(forker, SIGUSR1);
		for (i = 0; handled == before && i < 1000000; i++)
			;
		pause = (pause + 37) % 20000;
		for (i = 0; i < pause; i++)
			;
		if (forking)
			usleep(2000);
	}
	return arg;
}

static int blocked(void)
{
	sigset_t set;
	int sig, n = 0;

	must(sigprocmask(SIG_BLOCK, NULL, &set));
	for (sig = 1; sig < 65; sig++)
		n += sigismember(&set, sig) == 1;
	return n;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_usr1 };
	int i, status, calls = 0, parent = 0, children = 0;
	pthread_t t;

	sigaction(SIGUSR1, &sa, NULL);
	forker = pthread_self();
	need(!pthread_create(&t, NULL, shoot, NULL));
	for (i = 0; i < CALLS; i++) {
		need(syscall(SYS_clone3, NULL, 0) == -1);
		if (i % 50 == 0)
			calls += blocked() != 0;
	}
	forking = 1;
	for (i = 0; i < FORKS; i++) {
		/* Not fork(): the C library's may block signals around it. */
		long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (!pid)
			syscall(SYS_exit_group, blocked());
		if (pid < 0)
			continue;
		while (waitpid((int)pid, &status, 0) < 0 && errno == EINTR)
			;
		children += status != 0;
		parent += blocked() != 0;
	}
	over = 1;
	pthread_join(t, NULL);
	N(calls);
	N(parent);
	N(children);
	return 0;
}
