// SPDX-License-Identifier: GPL-2.0
/*
 * A process that has its parent's memory waits for a pipe beside a socket, with descriptors of its own or its parent's: by an epoll of
 * its own, by its parent's, and by poll() of one.
 */
#include "oracle.h"
#include <sched.h>

static char stack[65536] __attribute__((aligned(16)));
static int sock, pipes[2], theirs;
static bool own, polls;

static int both(void)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 7 };
	int fd = must(epoll_create1(0));

	must(epoll_ctl(fd, EPOLL_CTL_ADD, sock, &ev));
	must(epoll_ctl(fd, EPOLL_CTL_ADD, pipes[0], &ev));
	return fd;
}

/* Its status says what it got. */
static int child(void *arg)
{
	struct epoll_event ev = { 0 };
	int fd = own ? both() : theirs;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	if (polls && poll(&p, 1, 10000) != 1)
		return 100;
	return epoll_wait(fd, &ev, 1, 10000) == 1 ? (int)ev.data.u32 : 101;
}

static void run(const char *what, int flags)
{
	int status;
	pid_t pid;
	char c;

	pid = must(clone(child, stack + sizeof(stack), CLONE_VM | flags | SIGCHLD, NULL));
	usleep(50000);
	must(write(pipes[1], "x", 1));
	must(waitpid(pid, &status, 0));
	say("%s, epoll of %s%s: %d", what, own ? "its own" : "its parent", polls ? ", polled" : "",
	    WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	must(read(pipes[0], &c, 1));
}

int main(void)
{
	alarm(100);
	must(pipe(pipes));
	sock = must(socket(AF_INET, SOCK_DGRAM, 0));
	theirs = both();
	for (int i = 0; i < 4; i++) {
		own = i & 1;
		polls = i & 2;
		run("descriptors of its own", 0);
		run("its parent's", CLONE_FILES);
	}
	return 0;
}
