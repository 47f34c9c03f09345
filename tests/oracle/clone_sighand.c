// SPDX-License-Identifier: GPL-2.0
/* Processes that share memory and handlers (CLONE_SIGHAND): what one asks for holds for both, and how one dies is nothing to the other. */
#include "oracle.h"
#include <sched.h>

#define STACK	65536

static char stack[STACK] __attribute__((aligned(4096)));
static volatile int got;
static int from_child[2], pair[2];

static void count(int sig)
{
	(void)sig;
	got++;
}

static int dies(void *arg)
{
	syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), (long)arg);
	return 1;
}

static int asks(void *arg)
{
	(void)arg;
	signal(SIGUSR1, count);
	signal(SIGUSR2, SIG_IGN);
	signal(SIGURG, count);
	signal(SIGHUP, SIG_DFL);
	return 0;
}

static int disturbs(void *arg)
{
	pid_t parent = getppid();

	for (int i = 0; i < 20; i++) {
		kill(parent, SIGWINCH);
		kill(parent, SIGUSR2);
		kill(parent, SIGHUP);
		sleep_ms(5);
	}
	if (arg)
		return send(pair[0], "x", 1, 0) != 1;
	return write(from_child[1], "x", 1) != 1;
}

static int executes(void *arg)
{
	char *const args[] = { "self", "look", NULL };

	(void)arg;
	execv("/proc/self/exe", args);
	return 9;
}

static void child(const char *what, int (*run)(void *), long arg, int flags)
{
	pid_t pid = must(clone(run, stack + STACK, flags | CLONE_VM | CLONE_SIGHAND | SIGCHLD, (void *)arg));
	int s;

	must(waitpid(pid, &s, 0));
	say("%s: %s %d", what, WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
}

static const char *now(int sig)
{
	struct sigaction act;

	must(sigaction(sig, NULL, &act));
	return act.sa_handler == SIG_IGN ? "ignored" : act.sa_handler == SIG_DFL ? "default" : "handled";
}

static void look(void)
{
	static const int sigs[] = { SIGUSR1, SIGUSR2, SIGURG, SIGHUP, SIGTERM, SIGSEGV };

	for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
		say("%s: %s", strsignal(sigs[i]), now(sigs[i]));
}

int main(int argc, char **argv)
{
	static const int more[] = { 0, CLONE_VFORK };
	char c;

	alarm(30);
	if (argc == 2) {
		look();
		return 0;
	}
	(void)argv;
	udp_pair(AF_INET, pair);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		got = 0;
		child("a fault's signal", dies, SIGSEGV, more[i]);
		T(write(pair[0], (void *)8, 1));
		child("SIGTERM", dies, SIGTERM, more[i]);
		signal(SIGTERM, count);
		must(raise(SIGTERM));
		N(got);
		signal(SIGTERM, SIG_DFL);

		signal(SIGHUP, SIG_IGN);
		child("dispositions", asks, 0, more[i]);
		look();
		must(raise(SIGUSR1));
		must(raise(SIGUSR2));
		must(raise(SIGURG));
		N(got);
		signal(SIGURG, SIG_DFL);
		signal(SIGHUP, SIG_IGN);
		signal(SIGUSR1, SIG_DFL);
		child("exec", executes, 0, more[i]);
	}
	/* Signals that are ignored end no wait. */
	must(pipe(from_child));
	must(clone(disturbs, stack + STACK, CLONE_VM | CLONE_SIGHAND | SIGCHLD, NULL));
	wait_for(from_child[0], POLLIN);
	T(read(from_child[0], &c, 1));
	must(wait(NULL));
	must(clone(disturbs, stack + STACK, CLONE_VM | CLONE_SIGHAND | SIGCHLD, ""));
	T(recv(pair[1], &c, 1, 0));
	must(wait(NULL));

	/* A child that is forked from who has shared them has handlers of its own. */
	if (!must(fork())) {
		signal(SIGUSR2, SIG_DFL);
		_exit(0);
	}
	must(wait(NULL));
	say("after a fork: %s", now(SIGUSR2));
	signal(SIGCHLD, SIG_IGN);
	if (!must(fork()))
		_exit(0);
	T(wait(NULL));
	return 0;
}
