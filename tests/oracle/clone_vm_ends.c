// SPDX-License-Identifier: GPL-2.0
/* Processes that share their parent's memory end one after another, with and without threads of their own: no other process is blocked by what they leave there. */
#include "oracle.h"
#include <sched.h>

#define STACK	65536

static char stacks[2][STACK] __attribute__((aligned(4096)));
static volatile int waits;

static int call(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 ? 1 : close(fd);
}

/* A thread of the child's, without the C library's. */
static int thread(void *arg)
{
	(void)arg;
	for (;;) {
		call();
		waits = 1;
		usleep(1000);
	}
	return 0;
}

/* A wait for descriptors of both kinds. */
static int polls(void *arg)
{
	struct pollfd set[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int p[2];

	(void)arg;
	if (pipe(p))
		return 1;
	set[0].fd = p[0];
	set[1].fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (poll(set, 2, 20))
		return 2;
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(set[i].fd);
	}
	return 7;
}

static int threads(void *arg)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;

	waits = 0;
	if (clone(thread, stacks[1] + STACK, flags, NULL) < 0)
		return 3;
	while (!waits)
		usleep(1000);
	if (arg)
		raise(SIGKILL);
	syscall(SYS_exit_group, 8);
	return 4;
}

static int ends(void *arg)
{
	(void)arg;
	syscall(SYS_exit_group, 9);
	return 1;
}

static long memory(void)
{
	char text[64] = "";
	int fd = must(open("/proc/self/statm", O_RDONLY));

	must(read(fd, text, sizeof(text) - 1));
	close(fd);
	return atol(text) * 4096;
}

static void child(const char *what, int (*run)(void *), void *arg, int flags)
{
	pid_t pid = must(clone(run, stacks[0] + STACK, flags | CLONE_VM | SIGCHLD, arg));
	int status;

	must(waitpid(pid, &status, 0));
	say("%s, flags %x: %s %d", what, flags, WIFEXITED(status) ? "exit" : "signal",
	    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

int main(void)
{
	static const int flags[] = {
		0, CLONE_FILES, CLONE_SIGHAND, CLONE_VFORK, CLONE_FILES | CLONE_SIGHAND, CLONE_FILES | CLONE_VFORK,
	};

	long before;
	int status;

	alarm(20);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			child("polls", polls, NULL, flags[i]);
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			child("threads", threads, NULL, flags[i]);
		for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
			child("killed", threads, "", flags[i]);
	}
	before = memory();
	for (int i = 0; i < 100; i++)
		must(waitpid(must(clone(ends, stacks[0] + STACK, CLONE_VM | SIGCHLD, NULL)), &status, 0));
	N(memory() - before > 4 << 20);
	N(call());
	return 0;
}
