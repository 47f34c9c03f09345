// SPDX-License-Identifier: GPL-2.0
/* exit_group() beside threads that make calls without a pause: none of their calls is made after the process has ended. */
#include "oracle.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define PROCESSES	30
#define THREADS		3

static int ep;

static void *calls(void *none)
{
	struct epoll_event event;

	for (;;)
		epoll_wait(ep, &event, 1, 0);
	return none;
}

static void child(int number)
{
	struct epoll_event event = { .events = EPOLLIN };
	pthread_t thread;

	ep = must(epoll_create1(0));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, must(socket(AF_INET, SOCK_DGRAM, 0)), &event));
	for (int i = 0; i < THREADS; i++)
		must(-pthread_create(&thread, NULL, calls, NULL));
	usleep(500 + number * 7);
	_exit(number);
}

int main(void)
{
	int right = 0, status;

	for (int number = 1; number <= PROCESSES; number++) {
		pid_t pid = must(fork());

		if (!pid)
			child(number);
		must(waitpid(pid, &status, 0));
		right += WIFEXITED(status) && WEXITSTATUS(status) == number;
	}
	printf("%d\n", right);
	return 0;
}
