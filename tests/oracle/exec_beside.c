// SPDX-License-Identifier: GPL-2.0
/*
 * execve() beside threads that make calls without a pause, and by a thread that is not the first: the program that is executed has
 * the process's number, runs, and ends as any other.
 */
#include "oracle.h"
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#define PROCESSES	12
#define THREADS		3

static int ep;
static char number[16];

static void *calls(void *none)
{
	struct epoll_event event;

	for (;;)
		epoll_wait(ep, &event, 1, 0);
	return none;
}

static void *executes(void *pid)
{
	execl("/proc/self/exe", "exec_beside", number, pid, NULL);
	_exit(100);
}

static void child(int n)
{
	struct epoll_event event = { .events = EPOLLIN };
	char pid[16];
	pthread_t thread;

	snprintf(number, sizeof(number), "%d", n);
	snprintf(pid, sizeof(pid), "%d", getpid());
	ep = must(epoll_create1(0));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, must(socket(AF_INET, SOCK_DGRAM, 0)), &event));
	for (int i = 0; i < THREADS; i++)
		must(-pthread_create(&thread, NULL, calls, NULL));
	usleep(500 + n * 7);
	if (n % 3)
		executes(pid);
	must(-pthread_create(&thread, NULL, executes, pid));
	for (;;)
		pause();
}

/* The executed program: makes calls of the node. */
static int executed(int n, int pid)
{
	int s = must(socket(AF_INET, SOCK_DGRAM, 0));

	return getpid() == pid && !close(s) ? n : 101;
}

int main(int argc, char **argv)
{
	int right = 0, status;

	if (argc > 2)
		return executed(atoi(argv[1]), atoi(argv[2]));
	for (int n = 1; n <= PROCESSES; n++) {
		pid_t pid = must(fork());

		if (!pid)
			child(n);
		must(waitpid(pid, &status, 0));
		right += WIFEXITED(status) && WEXITSTATUS(status) == n;
	}
	printf("%d\n", right);
	return 0;
}
