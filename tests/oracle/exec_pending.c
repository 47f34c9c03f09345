// SPDX-License-Identifier: GPL-2.0
/* Blocked signals that have come stay pending over exec, those whose default is to be ignored among them; a fork child has none. */
#include "oracle.h"

static const int sigs[] = { SIGCHLD, SIGURG, SIGWINCH, SIGCONT, SIGUSR1, SIGTERM, SIGTSTP };
/* sigpending() of these is not looked at: tests/limits.toml. */
static const int raised[] = { SIGTRAP, SIGSEGV, SIGSYS };

static volatile int got[65];

static void count(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	got[sig] += info->si_code == SI_QUEUE && info->si_value.sival_int == 42 ? 1 : 100;
}

static void pending(void)
{
	sigset_t set;

	must(sigpending(&set));
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		say("%s: %s", strsignal(sigs[i]), sigismember(&set, sigs[i]) ? "pending" : "not pending");
}

static void let_in(void)
{
	struct sigaction act = { .sa_sigaction = count, .sa_flags = SA_SIGINFO };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++) {
		must(sigaction(raised[i], &act, NULL));
		sigaddset(&set, raised[i]);
	}
	must(sigprocmask(SIG_UNBLOCK, &set, NULL));
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
		say("%s: %d", strsignal(raised[i]), got[raised[i]]);
}

int main(int argc, char **argv)
{
	union sigval value = { .sival_int = 42 };
	sigset_t set;
	siginfo_t info;
	struct timespec none = { 0 };
	int s;

	alarm(20);
	if (argc == 2) {
		pending();
		let_in();
		sigemptyset(&set);
		sigaddset(&set, SIGCHLD);
		N(sigtimedwait(&set, &info, &none) == SIGCHLD);
		return 0;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		sigaddset(&set, sigs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
		sigaddset(&set, raised[i]);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	/* SIGCONT takes away what would stop, and the other way round. */
	for (size_t i = 0; i < ARRAY_SIZE(sigs) - 1; i++)
		must(kill(getpid(), sigs[i]));
	for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
		must(sigqueue(getpid(), raised[i], value));
	pending();

	fflush(stdout);
	if (!must(fork())) {
		say("in a child:");
		pending();
		sigemptyset(&set);
		for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
			sigaddset(&set, raised[i]);
		must(sigprocmask(SIG_UNBLOCK, &set, NULL));
		say("lives");
		_exit(3);
	}
	must(wait(&s));
	say("the child: %s %d", WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));

	T(execl("/nonexistent", "x", NULL));
	T(execl("/etc/passwd", "x", NULL));
	if (!must(fork())) {
		/* One that fails late: no argument may be that long. */
		char *large = malloc(200 << 10);

		memset(large, 'x', (200 << 10) - 1);
		large[(200 << 10) - 1] = 0;
		must(kill(getpid(), SIGURG));
		for (size_t i = 0; i < ARRAY_SIZE(raised); i++)
			must(sigqueue(getpid(), raised[i], value));
		T(execl("/proc/self/exe", "x", large, NULL));
		pending();
		let_in();
		fflush(stdout);
		_exit(0);
	}
	must(wait(&s));
	must(kill(getpid(), SIGCHLD));
	execl("/proc/self/exe", argv[0], "look", NULL);
	return 1;
}
