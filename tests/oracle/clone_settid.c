// SPDX-License-Identifier: GPL-2.0
/* A child that shares memory finds its number where CLONE_PARENT_SETTID says, and so does its parent. */
#include "oracle.h"
#include <sched.h>

#define STACK	65536

static char stack[STACK] __attribute__((aligned(4096)));
static volatile pid_t word, other;

static int looks(void *arg)
{
	(void)arg;
	return word == getpid() ? 1 : word ? 2 : 3;
}

static int changes(void *arg)
{
	looks(arg);
	word = 42;
	return 0;
}

static void child(const char *what, int (*run)(void *), int flags)
{
	pid_t pid;
	int s;

	word = other = 0;
	pid = must(clone(run, stack + STACK, flags | CLONE_PARENT_SETTID | SIGCHLD, NULL, &word, NULL, &other));
	say("%s: %s in the parent", what, word == pid ? "right" : word == 42 ? "changed" : "wrong");
	must(waitpid(pid, &s, 0));
	say("%s: %d %d", what, WEXITSTATUS(s), other == pid);
}

int main(void)
{
	alarm(20);
	child("vfork", looks, CLONE_VM | CLONE_VFORK);
	child("vfork, changes", changes, CLONE_VM | CLONE_VFORK);
	child("shares memory", looks, CLONE_VM);
	child("shares memory and files", looks, CLONE_VM | CLONE_FILES | CLONE_CHILD_SETTID);
	child("fork", changes, 0);
	return 0;
}
