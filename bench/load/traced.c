// SPDX-License-Identifier: GPL-2.0
/*
 * traced - what a program pays for a tracer, such as a node's adopter is on some hosts
 *
 * traced WAY prints one figure: microseconds, the median of ROUNDS. Without a way: the ways.
 *
 *   signal	a signal to itself, until its handler has run. There is a pause after each: who gets many is not traced
 *   thread	a thread, from before it is made until it is joined
 *   child	fork, the child ends, SIGCHLD has a handler, until the child is waited for
 *
 * It waits at first: a young program is not traced yet.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS		401
#define YOUNG_US	500000
#define PAUSE_US	2000

static volatile sig_atomic_t came;

static void handler(int sig)
{
	(void)sig;
	came = 1;
}

static void *nothing(void *arg)
{
	return arg;
}

static void way_signal(void)
{
	came = 0;
	kill(getpid(), SIGUSR1);
	while (!came)
		;
}

static void way_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL))
		exit(1);
}

static void way_child(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	while (waitpid(pid, NULL, 0) != pid)
		;
}

static const struct {
	const char *name;
	void (*fn)(void);
} ways[] = {
	{ "signal", way_signal },
	{ "thread", way_thread },
	{ "child", way_child },
};
#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int order(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;

	return (d > 0) - (d < 0);
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = handler };
	static double took[ROUNDS];
	unsigned int way, i;

	for (way = 0; way < WAYS && argc > 1 && strcmp(argv[1], ways[way].name); way++)
		;
	if (argc < 2 || way == WAYS) {
		for (way = 0; way < WAYS; way++)
			puts(ways[way].name);
		return argc > 1;
	}
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGCHLD, &action, NULL);
	usleep(YOUNG_US);
	for (i = 0; i < ROUNDS; i++) {
		double start = now_us();

		ways[way].fn();
		took[i] = now_us() - start;
		usleep(PAUSE_US);
	}
	qsort(took, ROUNDS, sizeof(took[0]), order);
	printf("%.2f\n", took[ROUNDS / 2]);
	return 0;
}
