// SPDX-License-Identifier: GPL-2.0
/* Signals that are ignored or blocked stay so over exec, those that instructions raise among them; after one that fails, too. */
#include "oracle.h"

static const int sigs[] = { SIGILL, SIGFPE, SIGTRAP, SIGSEGV, SIGBUS, SIGSYS, SIGUSR1, SIGTERM };

static void look(void)
{
	struct sigaction act;
	sigset_t mask;

	must(sigprocmask(SIG_BLOCK, NULL, &mask));
	for (unsigned int i = 0; i < ARRAY_SIZE(sigs); i++) {
		must(sigaction(sigs[i], NULL, &act));
		say("%s: %s, %s", strsignal(sigs[i]),
		    act.sa_handler == SIG_IGN ? "ignored" : act.sa_handler == SIG_DFL ? "default" : "handled",
		    sigismember(&mask, sigs[i]) ? "blocked" : "not blocked");
	}
}

static void nothing(int sig)
{
	(void)sig;
}

int main(int argc, char **argv)
{
	sigset_t mask;

	if (argc == 2) {
		look();
		/* An ignored signal does nothing. */
		must(kill(getpid(), SIGTRAP));
		say("goes on");
		return 0;
	}
	signal(SIGTRAP, SIG_IGN);
	signal(SIGSEGV, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGILL, nothing);
	sigemptyset(&mask);
	sigaddset(&mask, SIGFPE);
	sigaddset(&mask, SIGBUS);
	sigaddset(&mask, SIGTERM);
	must(sigprocmask(SIG_BLOCK, &mask, NULL));
	T(execl("/nonexistent", "x", NULL));
	T(execl("/etc/passwd", "x", NULL));
	look();
	T(write(must(socket(AF_INET, SOCK_DGRAM, 0)), (void *)8, 1));
	must(execl("/proc/self/exe", argv[0], "look", NULL));
	return 1;
}
