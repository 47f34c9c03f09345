// SPDX-License-Identifier: GPL-2.0
/* family.c - what a child inherits, and sets that parent and child share */
#include "t.h"

static int ep, pipefd[2], u[2];

static void add(int fd, uint64_t data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = data };

	MUST(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

static void look(const char *who, int ms)
{
	struct pollfd p[2] = { { .fd = pipefd[0], .events = POLLIN },
			       { .fd = u[1], .events = POLLIN } };
	struct epoll_event ev[4];
	int i, n = epoll_wait(ep, ev, 4, ms);

	printf("%s: epoll %d", who, n);
	for (i = 0; i < n; i++)
		printf(" %x", (int)ev[i].data.u64);
	printf(", poll %d\n", poll(p, 2, n ? 0 : ms));
	fflush(stdout);
}

static void child_of(const char *who, int depth)
{
	char c;
	pid_t pid;
	int st;

	look(who, 20);
	MUST(write(pipefd[1], "x", 1));
	look(who, 1000);
	MUST(read(pipefd[0], &c, 1));
	look(who, 20);
	MUST(send(u[0], "x", 1, 0));
	look(who, 1000);
	MUST(recv(u[1], &c, 1, 0));
	if (depth) {
		pid = MUST(fork());
		if (!pid) {
			child_of("grandchild", 0);
			exit(3);
		}
		MUST(waitpid(pid, &st, 0));
		printf("status %x\n", st);
	}
}

int main(int argc, char **argv)
{
	char arg[4][12];
	int st, fd;
	pid_t pid;
	char c;

	if (argc > 1) {
		fd = atoi(argv[1]);
		ep = atoi(argv[2]);
		pipefd[0] = atoi(argv[3]);
		u[1] = atoi(argv[4]);
		T(fcntl(fd, F_GETFD));
		T(fcntl(u[1], F_GETFD));
		T(socket(AF_INET, SOCK_DGRAM, 0));
		look("exec", 20);
		return 7;
	}
	udp_pair(u);
	MUST(pipe(pipefd));
	ep = MUST(epoll_create1(0));
	add(pipefd[0], 0xa);
	add(u[1], 0xb);
	look("parent", 20);
	fflush(stdout);
	pid = MUST(fork());
	if (!pid) {
		child_of("child", 1);
		exit(2);
	}
	MUST(waitpid(pid, &st, 0));
	printf("status %x\n", st);
	look("parent", 20);

	pid = MUST(fork());
	if (!pid) {
		usleep(50000);
		MUST(send(u[0], "x", 1, 0));
		usleep(50000);
		MUST(write(pipefd[1], "x", 1));
		exit(0);
	}
	look("parent, child sends", 2000);
	MUST(recv(u[1], &c, 1, 0));
	look("parent, child writes", 2000);
	MUST(read(pipefd[0], &c, 1));
	waitpid(pid, &st, 0);

	/* closing in a child leaves the parent's alone */
	pid = MUST(fork());
	if (!pid) {
		close_range(3, 100, 0);
		exit(0);
	}
	waitpid(pid, &st, 0);
	MUST(send(u[0], "x", 1, 0));
	look("parent", 1000);
	MUST(recv(u[1], &c, 1, 0));

	fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	snprintf(arg[0], 12, "%d", fd);
	snprintf(arg[1], 12, "%d", ep);
	snprintf(arg[2], 12, "%d", pipefd[0]);
	snprintf(arg[3], 12, "%d", u[1]);
	fflush(stdout);
	pid = vfork();
	if (!pid) {
		execl("/proc/self/exe", argv[0], arg[0], arg[1], arg[2], arg[3], NULL);
		_exit(9);
	}
	MUST(waitpid(pid, &st, 0));
	printf("status %x\n", st);
	look("parent", 20);
	return 0;
}
