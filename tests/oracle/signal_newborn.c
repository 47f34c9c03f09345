// SPDX-License-Identifier: GPL-2.0
/*
 * Signals sent to a process or thread that has just been made are not lost, whether the new one makes a
 * call or not: also those that the gate never lets the host block.
 */
#include "oracle.h"
#include <sched.h>

#define ROUNDS	20
#define WAIT_MS	1000

static const int sigs[] = { SIGSEGV, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSYS, SIGUSR1 };
static volatile int got, calls, mine;

static void on_signal(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	(void)info;
	got = sig;
}

static long ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);	/* no system call */
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void await_signal(int sig)
{
	long end = ms() + WAIT_MS;

	while (got != sig && ms() < end)
		if (calls)
			usleep(200);
}

static void pause_us(int us)
{
	struct timespec ts = { .tv_nsec = us * 1000 };

	if (us)
		nanosleep(&ts, NULL);
}

/* By a clone() without the C library, whose fork() may block signals. */
static int lost_by_children(int sig)
{
	int lost = 0, status, i;

	got = 0;
	for (i = 0; i < ROUNDS; i++) {
		long pid = must(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));

		if (!pid) {
			await_signal(sig);
			syscall(SYS_exit_group, got != sig);
		}
		pause_us(i % 5 * 60);
		must(kill((pid_t)pid, sig));
		must(waitpid((pid_t)pid, &status, 0));
		lost += status != 0;
	}
	return lost;
}

/* A signal without a handler ends it. */
static int outlived(int sig)
{
	int alive = 0, status, i;

	got = 0;
	signal(sig, SIG_DFL);
	for (i = 0; i < ROUNDS; i++) {
		long pid = must(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));

		if (!pid) {
			await_signal(sig);
			syscall(SYS_exit_group, 0);
		}
		pause_us(i % 5 * 60);
		must(kill((pid_t)pid, sig));
		must(waitpid((pid_t)pid, &status, 0));
		alive += !WIFSIGNALED(status) || WTERMSIG(status) != sig;
	}
	return alive;
}

static char stack[65536] __attribute__((aligned(16)));
static volatile int thread_tid, thread_lost, thread_sig;

static int thread_main(void *arg)
{
	(void)arg;
	await_signal(thread_sig);
	thread_lost += got != thread_sig;
	syscall(SYS_exit, 0);
	return 0;
}

static int lost_by_threads(int sig)
{
	int i;

	thread_lost = 0;
	thread_sig = sig;
	for (i = 0; i < ROUNDS; i++) {
		int tid;

		got = 0;
		thread_tid = -1;
		tid = must(clone(thread_main, stack + sizeof(stack), CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				 CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID, NULL, NULL, NULL, &thread_tid));
		pause_us(i % 5 * 20);
		syscall(SYS_tgkill, getpid(), tid, sig);
		while (thread_tid)
			usleep(100);
	}
	return thread_lost;
}

int main(void)
{
	struct sigaction act = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	size_t i;

	for (calls = 0; calls < 2; calls++) {
		say(calls ? "making calls:" : "making none:");
		for (i = 0; i < ARRAY_SIZE(sigs); i++) {
			must(sigaction(sigs[i], &act, NULL));
			say("%s:", strsignal(sigs[i]));
			say("  lost by children: %d", lost_by_children(sigs[i]));
			say("  lost by threads: %d", lost_by_threads(sigs[i]));
			say("  outlived: %d", outlived(sigs[i]));
		}
	}
	return 0;
}
