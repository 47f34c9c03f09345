// SPDX-License-Identifier: GPL-2.0
/* SIGCONT, without a handler, of a process that runs: no wait ends by it, and none takes longer. */
#include "oracle.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>

#define WAIT_MS		120
#define LATE_MS		400	/* beyond that only on a machine that has no time for us */

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* 0: in time; 1: too soon; 2: too late. */
static int in_time(long start)
{
	long ms = now_ms() - start;

	return ms < WAIT_MS ? 1 : ms > WAIT_MS + LATE_MS ? 2 : 0;
}

static pid_t nags(pid_t whom)
{
	pid_t pid = must(fork());

	if (pid)
		return pid;
	for (;;) {
		if (kill(whom, SIGCONT))
			exit(0);
		usleep(3000);
	}
}

int main(void)
{
	int node = must(socket(AF_INET, SOCK_DGRAM, 0)), pipes[2], ep = must(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN };
	struct timespec ts = { 0, WAIT_MS * 1000000L };
	struct timeval tv = { 0, WAIT_MS * 1000 };
	struct pollfd fds[2];
	char byte;
	pid_t pid;
	long start;
	int s;

	alarm(30);
	must(pipe(pipes));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, node, &ev));
	must(setsockopt(node, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	fds[0] = (struct pollfd){ node, POLLIN, 0 };
	fds[1] = (struct pollfd){ pipes[0], POLLIN, 0 };
	pid = nags(getpid());

	start = now_ms();
	N(nanosleep(&ts, NULL));
	N(in_time(start));
	start = now_ms();
	N(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL));
	N(in_time(start));
	start = now_ms();
	N(poll(NULL, 0, WAIT_MS));
	N(in_time(start));
	start = now_ms();
	N(poll(fds, 2, WAIT_MS));
	N(in_time(start));
	start = now_ms();
	N(poll(fds + 1, 1, WAIT_MS));
	N(in_time(start));
	start = now_ms();
	N(epoll_wait(ep, &ev, 1, WAIT_MS));
	N(in_time(start));
	start = now_ms();
	T(recv(node, &byte, 1, 0));
	N(in_time(start));
	/* One that waits without a limit: ends by a signal that has a handler, and by no other. */
	signal(SIGUSR1, (void (*)(int))getpid);
	if (!must(fork())) {
		usleep(WAIT_MS * 1000);
		kill(getppid(), SIGUSR1);
		_exit(0);
	}
	start = now_ms();
	T(pause());
	N(now_ms() - start >= WAIT_MS - 20);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &s, 0));
	return 0;
}
