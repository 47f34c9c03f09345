// SPDX-License-Identifier: GPL-2.0
/* A child or a fresh program adds to an epoll, waits on it and ends: its maker finds the member's events at its next wait, and none but those. */
#include "oracle.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

static void add(int epfd, int fd, unsigned int number)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = number };

	must(epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev));
}

static int by_number(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	return (int)x->data.u32 - (int)y->data.u32;
}

/* In any order. */
static void look(const char *what, int epfd)
{
	struct pollfd p = { epfd, POLLIN, 0 };
	struct epoll_event ev[4];
	int ready = must(poll(&p, 1, 0)), n = must(epoll_wait(epfd, ev, 4, 0));

	say("%s: poll %d, epoll_wait %d", what, ready, n);
	qsort(ev, n, sizeof(ev[0]), by_number);
	for (int i = 0; i < n; i++)
		say("  %x of %u", ev[i].events, ev[i].data.u32);
}

static void in_child(void (*work)(int epfd, int fd), int epfd, int fd)
{
	int status;
	pid_t pid = must(fork());

	if (!pid) {
		work(epfd, fd);
		_exit(0);
	}
	must(waitpid(pid, &status, 0));
	if (status)
		say("the child: %x", status);
}

static void joins(int epfd, int fd)
{
	add(epfd, fd, 7);
}

static void joins_and_waits(int epfd, int fd)
{
	struct epoll_event ev[4];

	add(epfd, fd, 7);
	must(epoll_wait(epfd, ev, 4, 0));
}

static void waits(int epfd, int fd)
{
	struct epoll_event ev[4];

	(void)fd;
	must(epoll_wait(epfd, ev, 4, 1));
}

/* The program again: an epoll inside another, both inherited. */
static int fresh(char **argv)
{
	int outer = atoi(argv[1]), inner = atoi(argv[2]);
	struct epoll_event ev[4];

	must(epoll_wait(inner, ev, 4, 0));
	look("outer, after exec", outer);
	return 0;
}

int main(int argc, char **argv)
{
	int u[2], p[2], epfd, outer;
	char a[20], b[20];

	if (argc == 3)
		return fresh(argv);
	udp_pair(AF_INET, u);
	must(pipe(p));
	must(send(u[0], "x", 1, 0));
	must(write(p[1], "x", 1));

	epfd = must(epoll_create1(0));
	in_child(joins, epfd, u[1]);
	look("a socket by the child", epfd);
	epfd = must(epoll_create1(0));
	in_child(joins_and_waits, epfd, u[1]);
	look("a socket by the child, which waits", epfd);
	epfd = must(epoll_create1(0));
	in_child(joins, epfd, p[0]);
	look("a pipe by the child", epfd);
	epfd = must(epoll_create1(0));
	add(epfd, u[1], 1);
	in_child(joins, epfd, p[0]);
	look("a pipe by the child, beside a socket", epfd);
	epfd = must(epoll_create1(0));
	add(epfd, p[0], 1);
	in_child(joins, epfd, u[1]);
	look("a socket by the child, beside a pipe", epfd);

	must(recv(u[1], (char[1]){ 0 }, 1, 0));
	must(read(p[0], (char[1]){ 0 }, 1));
	epfd = must(epoll_create1(0));
	look("empty", epfd);
	add(epfd, u[1], 1);
	in_child(waits, epfd, -1);
	look("polled, and the child waits", epfd);
	add(epfd, p[0], 2);
	in_child(waits, epfd, -1);
	look("polled, of both kinds, and the child waits", epfd);

	epfd = must(epoll_create1(0));
	outer = must(epoll_create1(0));
	add(epfd, u[1], 1);
	add(outer, epfd, 3);
	snprintf(a, sizeof(a), "%d", outer);
	snprintf(b, sizeof(b), "%d", epfd);
	fflush(stdout);
	execl("/proc/self/exe", argv[0], a, b, NULL);
	return 1;
}
