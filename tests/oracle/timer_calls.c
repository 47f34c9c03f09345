// SPDX-License-Identifier: GPL-2.0
/* Host calls that wait are as they were, beside sockets: nanosleep, pipes, futexes, timerfd, wait. */
#include "oracle.h"

static int pipes[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;

static void *late(void *arg)
{
	sleep_ms(50);
	must(write(pipes[1], "x", 1));
	sleep_ms(50);
	pthread_mutex_lock(&lock);
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&lock);
	return NULL;
}

int main(void)
{
	int status, u = bound(AF_INET, SOCK_DGRAM), tfd = must(timerfd_create(CLOCK_MONOTONIC, 0));
	double start = seconds();
	struct itimerspec its = { .it_value.tv_nsec = 50000000 };
	uint64_t ticks = 0;
	pthread_t t;
	char b;

	T(usleep(50000));
	say("%s", about(start, 0.05));
	must(pipe(pipes));
	start = seconds();
	pthread_mutex_lock(&lock);
	t = spawn(late, NULL);
	T(read(pipes[0], &b, 1));
	pthread_cond_wait(&cond, &lock);
	pthread_mutex_unlock(&lock);
	say("%s", about(start, 0.1));
	join(t);
	start = seconds();
	must(timerfd_settime(tfd, 0, &its, NULL));
	T(read(tfd, &ticks, 8));
	N(ticks);
	say("%s", about(start, 0.05));
	if (!must(fork())) {
		sleep_ms(30);
		_exit(7);
	}
	must(wait(&status));
	N(WEXITSTATUS(status));
	T(close(u));
	return 0;
}
