// SPDX-License-Identifier: GPL-2.0
/* sigaction() keeps the flags that the kernel knows, and tells by that which those are. */
#include "oracle.h"

#define RESTORER	0x04000000UL

struct action {
	void (*handler)(int);
	unsigned long flags;
	void *restorer;
	unsigned long mask;
};

static void handler(int sig)
{
	say("handler of %d", sig);
}

int main(void)
{
	struct sigaction libc;
	struct action a = { .handler = handler }, b = { 0 };

	/* The C library's restorer, for a handler that comes back. */
	libc.sa_handler = handler;
	sigemptyset(&libc.sa_mask);
	libc.sa_flags = 0;
	must(sigaction(SIGUSR1, &libc, NULL));
	must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &a, 8));
	for (int bit = 0; bit < 64; bit++) {
		a.flags = 1UL << bit | RESTORER;
		must(syscall(SYS_rt_sigaction, SIGUSR1, &a, NULL, 8));
		must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &b, 8));
		say("%lx: %lx", a.flags, b.flags);
	}
	a.flags = ~0UL;
	must(syscall(SYS_rt_sigaction, SIGUSR1, &a, NULL, 8));
	must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &b, 8));
	say("%lx", b.flags);
	raise(SIGUSR1);
	must(syscall(SYS_rt_sigaction, SIGUSR1, NULL, &b, 8));
	say("%lx, default %d", b.flags, !b.handler);
	return 0;
}
