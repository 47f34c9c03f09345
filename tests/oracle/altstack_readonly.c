// SPDX-License-Identifier: GPL-2.0
/* A handler's stack that is read-only when the handler returns: the interrupted code continues, with its registers and its mask. */
#include "oracle.h"

#define BYTES	65536

static char *alt;

/* No call and no push from the moment on at which the stack is read-only. */
static void on_usr1(int sig)
{
	long ret;

	(void)sig;
	asm volatile("syscall" : "=a"(ret) : "0"(SYS_mprotect), "D"(alt), "S"(BYTES), "d"(PROT_READ) : "rcx", "r11", "memory");
}

static void handlers(int flags)
{
	struct sigaction usr1 = { .sa_handler = on_usr1, .sa_flags = SA_ONSTACK | flags };
	stack_t st = { .ss_sp = alt, .ss_size = BYTES }, now;
	volatile double kept = 1.25;
	double x = kept, y = kept * 3;
	char *mine = alt + BYTES - 64;
	sigset_t set;
	int i, in_order = 0;

	must(sigaltstack(&st, NULL));
	must(sigaction(SIGUSR1, &usr1, NULL));
	for (i = 0; i < 200; i++) {
		must(mprotect(alt, BYTES, PROT_READ | PROT_WRITE));
		memset(mine, i, 64);
		x = x * 1.0 + y;
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
		x -= y;
		in_order += x == kept && mine[0] == (char)i;
	}
	sigprocmask(SIG_BLOCK, NULL, &set);
	must(sigaltstack(NULL, &now));
	say("%d times in order, SIGUSR1 %s, the stack is %s", in_order, sigismember(&set, SIGUSR1) ? "blocked" : "not blocked",
	    now.ss_sp == alt && now.ss_size == BYTES ? "as it was" : "another");
}

int main(void)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	alt = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	handlers(0);
	handlers(SA_NODEFER);
	handlers(SA_RESTART | SA_SIGINFO);
	say("a socket is %s", close(fd) ? "gone" : "there");
	return 0;
}
