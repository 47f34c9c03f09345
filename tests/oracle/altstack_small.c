// SPDX-License-Identifier: GPL-2.0
/* An alternate stack that has no room for the frame: SIGSEGV, and what lies below it stays as it was. */
#include "oracle.h"

#define BELOW	16384
#define SMALL	2048	/* MINSIGSTKSZ */

static char *memory;

static void handler(int sig)
{
	(void)sig;
}

static void child(const char *what, size_t size, int flags)
{
	stack_t alt = { .ss_sp = memory + BELOW, .ss_size = size, .ss_flags = flags };
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	int s, touched = 0;

	memset(memory, 0, BELOW);
	fflush(stdout);
	if (!must(fork())) {
		must(sigaltstack(&alt, NULL));
		must(sigaction(SIGUSR1, &act, NULL));
		must(raise(SIGUSR1));
		_exit(0);
	}
	must(wait(&s));
	for (int i = 0; i < BELOW; i++)
		touched |= memory[i];
	say("%s: %s %d, below: %s", what, WIFEXITED(s) ? "exit" : "signal",
	    WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s), touched ? "written to" : "as it was");
}

int main(void)
{
	memory = mmap(NULL, BELOW + 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(memory != MAP_FAILED);
	child("large", 65536, 0);
	child("small", SMALL, 0);
	child("small, disarmed", SMALL, 1u << 31);
	return 0;
}
