// SPDX-License-Identifier: GPL-2.0
/*
 * pollmix.c - threads that poll and select sets of both kinds, some members shared:
 * every message arrives, and soon
 */
#include "t.h"

#define THREADS	4
#define ROUNDS	600

static int shared[2], own_pipe[THREADS][2], own_udp[THREADS][2], ack[THREADS][2];
static volatile int counted, late, stop;

static void *waiter(void *arg)
{
	long me = (long)arg;
	struct pollfd p[3];
	fd_set in;
	int i, n, max, turn;
	char c;

	for (turn = 0; !stop; turn++) {
		int fd[3] = { shared[0], own_pipe[me][0], own_udp[me][1] };

		if (turn & 1) {
			FD_ZERO(&in);
			for (i = 0, max = 0; i < 3; i++) {
				FD_SET(fd[i], &in);
				max = fd[i] > max ? fd[i] : max;
			}
			n = select(max + 1, &in, NULL, NULL, NULL);
		} else {
			for (i = 0; i < 3; i++)
				p[i] = (struct pollfd){ .fd = fd[i], .events = POLLIN };
			n = poll(p, 3, -1);
		}
		if (n <= 0)
			printf("wait: %d %s\n", n, strerror(errno));
		for (i = 0; i < 3; i++) {
			while (read(fd[i], &c, 1) == 1) {
				__atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
				(void)!write(ack[me][1], &c, 1);
			}
		}
	}
	return NULL;
}

static void expect_ack(int me)
{
	struct pollfd p[THREADS];
	int i;
	char c;

	for (i = 0; i < THREADS; i++)
		p[i] = (struct pollfd){ .fd = me < 0 || i == me ? ack[i][0] : -1,
					.events = POLLIN };
	if (poll(p, THREADS, 1000) <= 0) {
		late++;
		return;
	}
	for (i = 0; i < THREADS; i++)
		if (p[i].revents)
			(void)!read(ack[i][0], &c, 1);
}

int main(void)
{
	pthread_t t[THREADS];
	unsigned int seed = 7;
	long i;
	int k;

	MUST(pipe2(shared, O_NONBLOCK));
	for (i = 0; i < THREADS; i++) {
		MUST(pipe2(own_pipe[i], O_NONBLOCK));
		MUST(pipe(ack[i]));
		udp_pair(own_udp[i]);
		fcntl(own_udp[i][1], F_SETFL, O_NONBLOCK);
	}
	for (i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, waiter, (void *)i);
	for (i = 0; i < ROUNDS && late < 5; i++) {
		k = rand_r(&seed) % THREADS;
		switch (rand_r(&seed) % 3) {
		case 0:
			MUST(write(shared[1], "s", 1));
			expect_ack(-1);
			break;
		case 1:
			MUST(write(own_pipe[k][1], "p", 1));
			expect_ack(k);
			break;
		case 2:
			MUST(send(own_udp[k][0], "u", 1, 0));
			expect_ack(k);
			break;
		}
	}
	printf("%d of %d, %d late\n", counted, ROUNDS, late);
	stop = 1;
	for (i = 0; i < THREADS; i++)
		MUST(write(own_pipe[i][1], "e", 1));
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	puts("all ended");
	return 0;
}
