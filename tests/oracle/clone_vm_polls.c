// SPDX-License-Identifier: GPL-2.0
/*
 * A process that shares its parent's memory and descriptors waits for a socket and a pipe, and ends: the parent's
 * waits for such sets end when something is there.
 */
#include "oracle.h"
#include <sched.h>

static int pipes[2];
static char stack[65536] __attribute__((aligned(16)));

static int wait_for_both(int ms)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0)), ret;
	struct pollfd p[2] = { { .fd = pipes[0], .events = POLLIN }, { .fd = fd, .events = POLLIN } };

	ret = poll(p, 2, ms);
	close(fd);
	return ret;
}

static int child(void *arg)
{
	return wait_for_both(20);
}

static void *writer(void *arg)
{
	usleep(200000);
	must(write(pipes[1], "x", 1));
	return NULL;
}

int main(void)
{
	pthread_t t;
	int status;
	pid_t pid;

	must(pipe(pipes));
	pid = must(clone(child, stack + sizeof(stack), CLONE_VM | CLONE_FILES | SIGCHLD, NULL));
	must(waitpid(pid, &status, 0));
	N(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	need(!pthread_create(&t, NULL, writer, NULL));
	N(wait_for_both(3000));
	pthread_join(t, NULL);
	return 0;
}
