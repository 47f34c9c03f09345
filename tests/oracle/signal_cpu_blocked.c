// SPDX-License-Identifier: GPL-2.0
/*
 * A process dies of what its own instruction did, with that signal blocked, ignored or neither, while another of its
 * threads is busy in the network: the status is that signal, and others go on.
 */
#include "oracle.h"
#include <sys/prctl.h>

static int u[2];
static volatile bool done;

static void *sends(void *arg)
{
	char b[64];

	for (;;) {
		send(u[1], "x", 1, 0);
		recv(u[0], b, sizeof(b), MSG_DONTWAIT);
	}
	return arg;
}

static void dies(int sig, int how)
{
	sigset_t all;

	prctl(PR_SET_DUMPABLE, 0);
	udp_pair(AF_INET, u);
	for (int i = 0; i < 2; i++)
		spawn(sends, NULL);
	sigfillset(&all);
	if (how == 1)
		must(sigprocmask(SIG_SETMASK, &all, NULL));
	if (how == 2)
		signal(sig, SIG_IGN);
	usleep(3000);
	switch (sig) {
	case SIGFPE:
		__asm__ volatile("xorl %%edx, %%edx; xorl %%eax, %%eax; xorl %%ecx, %%ecx; divl %%ecx"
				 : : : "eax", "ecx", "edx");
		break;
	case SIGILL:
		__asm__ volatile("ud2");
		break;
	case SIGTRAP:
		__asm__ volatile("int3");
		break;
	case SIGSEGV:
		*(volatile int *)8 = 0;
		break;
	}
	_exit(0);
}

static volatile sig_atomic_t caught;

static void handler(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	caught = sig;
	say("handler %d, code %d, blocked %d", sig, info->si_code, sigismember(&uc->uc_sigmask, SIGTRAP));
	if (sig != SIGTRAP)
		uc->uc_mcontext.gregs[REG_RIP] += 2;
}

int main(void)
{
	static const int sigs[] = { SIGFPE, SIGILL, SIGTRAP, SIGSEGV };
	struct sigaction act = { .sa_sigaction = handler, .sa_flags = SA_SIGINFO };
	sigset_t set, pending;

	for (unsigned int i = 0; i < ARRAY_SIZE(sigs); i++) {
		for (int how = 0; how < 3; how++) {
			int same = 0;

			for (int n = 0; n < 8; n++) {
				pid_t pid = must(fork());
				int status;

				if (!pid)
					dies(sigs[i], how);
				must(waitpid(pid, &status, 0));
				same += WIFSIGNALED(status) && WTERMSIG(status) == sigs[i];
			}
			say("%s %d: %d", strsignal(sigs[i]), how, same);
		}
	}

	/* Handlers of them, and what is sent by others while blocked. */
	for (int i = 0; i < 3; i++)
		must(sigaction(sigs[i], &act, NULL));
	__asm__ volatile("ud2");
	N(caught);
	__asm__ volatile("int3");
	N(caught);
	sigemptyset(&set);
	sigaddset(&set, SIGTRAP);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	caught = 0;
	must(kill(getpid(), SIGTRAP));
	N(caught);
	must(sigprocmask(SIG_UNBLOCK, &set, NULL));
	N(caught);
	must(sigprocmask(0, NULL, &pending));
	N(sigismember(&pending, SIGTRAP));
	return 0;
}
