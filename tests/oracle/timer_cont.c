// SPDX-License-Identifier: GPL-2.0
/* A timer of 1 ns that sends SIGCONT, which no handler takes: blocked, then unblocked. The process goes on, and can be stopped and continued. */
#include "oracle.h"

#define FIRST_NS	2000000
#define OVERRUNS	75	/* as POSIX's test of timer_getoverrun() has it, less a few */
#define TURNS		20	/* stops */

static void stopped_and_continued(void)
{
	int status, good = 0;
	pid_t pid = must(fork());

	if (!pid)
		for (;;)
			pause();
	for (int i = 0; i < TURNS; i++) {
		must(kill(pid, SIGTSTP));
		must(waitpid(pid, &status, WUNTRACED));
		good += WIFSTOPPED(status) && WSTOPSIG(status) == SIGTSTP;
		must(kill(pid, SIGCONT));
		must(waitpid(pid, &status, WCONTINUED));
		good += WIFCONTINUED(status);
	}
	N(good);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, NULL, 0));
}

int main(void)
{
	struct sigevent ev = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT };
	struct itimerspec its = { .it_interval.tv_nsec = 1, .it_value.tv_nsec = FIRST_NS };
	timer_t timer;
	sigset_t set;

	/* A node that serves nothing has no part in this. */
	T(close(bound(AF_INET, SOCK_DGRAM)));
	sigemptyset(&set);
	sigaddset(&set, SIGCONT);
	T(sigprocmask(SIG_BLOCK, &set, NULL));
	must(timer_create(CLOCK_REALTIME, &ev, &timer));
	T(timer_settime(timer, 0, &its, NULL));
	must(usleep(3 * FIRST_NS / 1000));
	T(sigprocmask(SIG_UNBLOCK, &set, NULL));
	N(timer_getoverrun(timer) >= OVERRUNS);
	/* It goes on, and nobody hears of it. */
	must(usleep(1000));
	T(raise(SIGCONT));
	T(timer_delete(timer));
	stopped_and_continued();
	return 0;
}
