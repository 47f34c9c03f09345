// SPDX-License-Identifier: GPL-2.0
/* A program with a SIGSEGV handler of its own: bad pointers to calls stay EFAULT, its own faults reach it. */
#include "oracle.h"
#include <setjmp.h>

static sigjmp_buf back;
static void *volatile fault_address;

static void on_segv(int signo, siginfo_t *info, void *context)
{
	fault_address = info->si_addr;
	siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
	int u[2];
	char b[8];

	udp_pair(AF_INET, u);
	must(sigaction(SIGSEGV, &sa, NULL));
	for (int i = 0; i < 3; i++) {
		T(send(u[0], (void *)0x1000, 4, 0));
		if (!sigsetjmp(back, 1)) {
			*(volatile int *)0x2345678000 = 1;
			say("not reached");
		}
		say("own fault at the right address %d", fault_address == (void *)0x2345678000);
		T(send(u[0], "ok", 2, 0));
		T(recv(u[1], (void *)0x1000, 4, 0));
		T(recv(u[1], b, 4, MSG_DONTWAIT));
	}
	return 0;
}
