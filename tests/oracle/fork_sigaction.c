// SPDX-License-Identifier: GPL-2.0
/* Children of a process whose other threads change dispositions can change theirs. */
#include "oracle.h"
#include <signal.h>
#include <sys/wait.h>

#define FORKS	500

static volatile int over;

static void on_usr2(int sig)
{
	(void)sig;
}

static void *changes(void *arg)
{
	struct sigaction sa = { .sa_handler = on_usr2 };

	while (!over) {
		sa.sa_flags ^= SA_RESTART;
		sigaction(SIGUSR2, &sa, NULL);
	}
	return arg;
}

int main(void)
{
	pthread_t t[2];
	int status, bad = 0;

	for (int i = 0; i < 2; i++)
		t[i] = spawn(changes, NULL);
	for (int i = 0; i < FORKS; i++) {
		int pid = must(fork());

		if (!pid) {
			signal(SIGUSR2, SIG_DFL);
			_exit(3);
		}
		must(waitpid(pid, &status, 0));
		bad += WEXITSTATUS(status) != 3;
	}
	over = 1;
	for (int i = 0; i < 2; i++)
		join(t[i]);
	N(bad);
	return 0;
}
