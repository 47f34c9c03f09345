// SPDX-License-Identifier: GPL-2.0
/* Handlers with SA_SIGINFO and on a stack of their own, while a call waits. */
#include "oracle.h"

static char stack[65536];
static volatile sig_atomic_t on_stack, right_info;
static pthread_t target;
static pid_t target_tid;

static void on_signal(int signo, siginfo_t *info, void *context)
{
	char here;

	on_stack = &here >= stack && &here < stack + sizeof(stack);
	right_info = info->si_signo == signo && info->si_code == SI_QUEUE && info->si_value.sival_int == 4711;
}

/* On the stack in question. */
static void on_stack_itself(int signo)
{
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) / 2 }, none = { .ss_flags = SS_DISABLE }, now;

	(void)signo;
	T(sigaltstack(&other, NULL));
	T(sigaltstack(&none, NULL));
	must(sigaltstack(NULL, &now));
	say("in use %d, as set %d", now.ss_flags == SS_ONSTACK, now.ss_size == sizeof(stack));
}

static void *disturb(void *arg)
{
	wait_until_asleep(target_tid);
	pthread_sigqueue(target, SIGRTMIN, (union sigval){ .sival_int = 4711 });
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK }, old;
	stack_t ss = { .ss_sp = stack, .ss_size = sizeof(stack) }, now;
	int u = bound(AF_INET, SOCK_DGRAM);
	pthread_t t;
	char b[4];

	target = pthread_self();
	target_tid = gettid();
	must(sigaltstack(&ss, NULL));
	must(sigaction(SIGRTMIN, &sa, NULL));
	t = spawn(disturb, NULL);
	T(recv(u, b, 4, 0));
	join(t);
	N(on_stack);
	N(right_info);
	must(sigaltstack(NULL, &now));
	say("own stack still set %d", now.ss_sp == stack && now.ss_size == sizeof(stack));
	must(sigaction(SIGRTMIN, NULL, &old));
	say("handler as set %d flags %#x", old.sa_sigaction == on_signal, old.sa_flags & ~0x04000000);
	sa.sa_handler = on_stack_itself;
	sa.sa_flags = SA_ONSTACK;
	must(sigaction(SIGUSR1, &sa, NULL));
	must(raise(SIGUSR1));
	return 0;
}
