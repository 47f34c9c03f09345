// SPDX-License-Identifier: GPL-2.0
/*
 * busy - threads that do nothing but call the stack, each on sockets of its own
 *
 *	busy THREADS SECONDS
 *
 * Each sends itself a datagram of 64 bytes and receives it, again and again. What is
 * reported is the sum: whether the stack lets them run beside each other.
 */
#include "wire.h"
#include <pthread.h>
#include <stdatomic.h>

#define THREADS_MAX	16
#define BATCH		64	/* pairs between two looks at the clock */

static atomic_int waiting, go;
static uint64_t seconds_ns;

struct worker {
	pthread_t thread;
	uint64_t pairs, ns;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct sockaddr_in a = address("127.0.0.1", "0");
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[64] = { 0 };
	uint64_t start, now;

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockname(fd, (struct sockaddr *)&a, &len) ||
	    connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("socket");
	atomic_fetch_add(&waiting, 1);
	while (!atomic_load(&go))
		usleep(100);
	start = now_ns();
	do {
		for (int i = 0; i < BATCH; i++)
			if (send(fd, buf, sizeof(buf), 0) != sizeof(buf) ||
			    recv(fd, buf, sizeof(buf), 0) != sizeof(buf))
				die("pair");
		w->pairs += BATCH;
		now = now_ns();
	} while (now - start < seconds_ns);
	w->ns = now - start;
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS_MAX];
	int n = argc == 3 ? atoi(argv[1]) : 0;
	double rate = 0;

	if (n < 1 || n > THREADS_MAX) {
		fprintf(stderr, "usage: see the head of busy.c\n");
		return 2;
	}
	seconds_ns = atof(argv[2]) * 1e9;
	for (int i = 0; i < n; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("pthread_create");
	while (atomic_load(&waiting) < n)
		usleep(100);
	atomic_store(&go, 1);
	for (int i = 0; i < n; i++) {
		pthread_join(workers[i].thread, NULL);
		rate += workers[i].pairs * 1e9 / workers[i].ns;
	}
	out("rate", rate);
	return 0;
}
