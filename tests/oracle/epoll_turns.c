// SPDX-License-Identifier: GPL-2.0
/* Members that are always ready leave room for the others, where an answer has room for one. */
#include "oracle.h"
#include "waiting.h"
#include <sched.h>
#include <sys/wait.h>

static char stack[262144] __attribute__((aligned(16)));

static void turns(bool polled)
{
	int e = must(epoll_create1(0)), u[2], p[2], seen[3] = { 0 };
	struct epoll_event ev;
	struct pollfd f = { e, POLLIN, 0 };

	udp_pair(AF_INET, u);
	must(pipe(p));
	add(e, p[1], EPOLLOUT, 1);
	add(e, u[0], EPOLLIN, 2);
	if (polled)
		T(poll(&f, 1, 1000));
	must(send(u[1], "x", 1, 0));
	sleep_ms(20);
	for (int i = 0; i < 6; i++)
		if (epoll_wait(e, &ev, 1, 1000) == 1)
			seen[ev.data.u64 % 3] = 1;
	say("%d %d %d", seen[0], seen[1], seen[2]);
}

/* In a process with descriptors of its own, but its parent's memory. */
static int borrower(void *none)
{
	turns(false);
	fflush(stdout);
	return 0;
}

int main(void)
{
	turns(false);
	turns(true);
	fflush(stdout);
	must(waitpid(must(clone(borrower, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL)), NULL, 0));
	return 0;
}
