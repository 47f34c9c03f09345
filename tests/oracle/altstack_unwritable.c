// SPDX-License-Identifier: GPL-2.0
/* A handler whose alternate stack can't be written to: SIGSEGV's runs if it is for the ordinary stack, or else the program dies of SIGSEGV. */
#include "oracle.h"

static char *alt;

static void on_usr1(int sig)
{
	say("handler of %d, on a stack that can't be", sig);
}

static void on_segv(int sig, siginfo_t *info, void *uc)
{
	char here;

	(void)uc;
	say("SIGSEGV %d, code %d, on the %s stack", sig, info->si_code, &here >= alt && &here < alt + 65536 ? "alternate" : "ordinary");
}

enum { HANDLER = 1, ON_STACK = 2, BLOCKED = 4, IGNORED = 8, INSIDE = 16 };

static void run(const char *what, int prot, int how)
{
	struct sigaction usr1 = { .sa_handler = on_usr1, .sa_flags = SA_ONSTACK };
	struct sigaction segv = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | (how & ON_STACK ? SA_ONSTACK : 0) };
	sigset_t set;
	int s;

	fflush(stdout);
	if (!must(fork())) {
		stack_t st = { .ss_sp = alt, .ss_size = 65536 };

		must(mprotect(alt, 65536, prot));
		must(sigaltstack(&st, NULL));
		must(sigaction(SIGUSR1, &usr1, NULL));
		if (how & HANDLER)
			must(sigaction(SIGSEGV, &segv, NULL));
		if (how & IGNORED)
			signal(SIGSEGV, SIG_IGN);
		sigemptyset(&set);
		sigaddset(&set, SIGSEGV);
		if (how & BLOCKED)
			must(sigprocmask(SIG_BLOCK, &set, NULL));
		if (how & INSIDE) {
			int fd = socket(AF_INET, SOCK_DGRAM, 0);
			struct timeval tv = { .tv_sec = 2 };
			char c;

			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
			if (!fork()) {
				usleep(50000);
				kill(getppid(), SIGUSR1);
				_exit(0);
			}
			say("recv: %s", recv(fd, &c, 1, 0) < 0 ? ename(errno) : "?");
		} else {
			raise(SIGUSR1);
		}
		sigprocmask(SIG_BLOCK, NULL, &set);
		say("goes on, SIGUSR1 %s", sigismember(&set, SIGUSR1) ? "blocked" : "not blocked");
		fflush(stdout);
		_exit(0);
	}
	must(wait(&s));
	say("%s: %s %d", what, WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
}

int main(void)
{
	struct rlimit none = { 0 };

	setrlimit(RLIMIT_CORE, &none);
	alt = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	run("a handler for the ordinary stack", PROT_READ, HANDLER);
	run("the same, nothing mapped", PROT_NONE, HANDLER);
	run("the same, in a call", PROT_READ, HANDLER | INSIDE);
	run("a handler for the alternate stack", PROT_READ, HANDLER | ON_STACK);
	run("no handler", PROT_READ, 0);
	run("blocked", PROT_READ, HANDLER | BLOCKED);
	run("ignored", PROT_READ, IGNORED);
	return 0;
}
