// SPDX-License-Identifier: GPL-2.0
/* A signal on the way through exec: none stays blocked after it, and one that kills is not lost. */
#include "oracle.h"

static void nothing(int sig)
{
	(void)sig;
}

static int look(const char *how)
{
	sigset_t mask;
	int n = 0;

	must(sigprocmask(SIG_BLOCK, NULL, &mask));
	for (int i = 1; i < 65; i++)
		n += sigismember(&mask, i) == 1;
	if (*how == 's')
		sleep(5);	/* its parent may have no CPU for long */
	return n;
}

int main(int argc, char **argv)
{
	int blocked = 0, lost = 0, s;
	volatile int j;
	pid_t pid;

	if (argc == 2)
		return look(argv[1]);
	alarm(100);
	signal(SIGWINCH, nothing);	/* after exec it is ignored again */
	for (int i = 0; i < 200; i++) {
		pid = must(fork());
		if (!pid) {
			execl("/proc/self/exe", argv[0], "look", NULL);
			_exit(99);
		}
		/* Not without a pause: exec begins again after each signal that has a handler. */
		while (!waitpid(pid, &s, WNOHANG)) {
			kill(pid, SIGWINCH);
			usleep(300);
		}
		blocked += s != 0;
	}
	for (int i = 0; i < 200; i++) {
		pid = must(fork());
		if (!pid) {
			execl("/proc/self/exe", argv[0], "sleep", NULL);
			_exit(99);
		}
		for (j = 0; j < i * 4000; j++)
			;
		kill(pid, SIGTERM);
		must(waitpid(pid, &s, 0));
		lost += !WIFSIGNALED(s);
	}
	N(blocked);
	N(lost);
	return 0;
}
