// SPDX-License-Identifier: GPL-2.0
/*
 * herd.c - many threads on one epoll with descriptors of both kinds: nothing is
 * lost, nobody sleeps on. Each message is one byte; consumers count them.
 */
#include "t.h"

#define THREADS	4
#define PAIRS	3
#define MESSAGES 3000

static int ep, pipes[PAIRS][2], udp[PAIRS][2], end;
static volatile int counted;
static int flags;

static void *consumer(void *arg)
{
	struct epoll_event ev[3];
	struct epoll_event again;
	char c;
	int i, n, fd;

	(void)arg;
	for (;;) {
		n = epoll_wait(ep, ev, 3, -1);
		if (n < 0) {
			printf("epoll_wait: %s\n", strerror(errno));
			return NULL;
		}
		for (i = 0; i < n; i++) {
			fd = ev[i].data.fd;
			if (fd == end)
				return NULL;
			while (read(fd, &c, 1) == 1)
				__atomic_fetch_add(&counted, 1, __ATOMIC_SEQ_CST);
			if (flags & EPOLLONESHOT) {
				again = (struct epoll_event){ .events = EPOLLIN | flags,
							      .data.fd = fd };
				epoll_ctl(ep, EPOLL_CTL_MOD, fd, &again);
			}
		}
	}
}

static void *producer(void *arg)
{
	unsigned int seed = (long)arg;
	int i, k;

	for (i = 0; i < MESSAGES; i++) {
		k = rand_r(&seed) % PAIRS;
		if (rand_r(&seed) & 1)
			(void)!write(pipes[k][1], "x", 1);
		else
			while (send(udp[k][0], "x", 1, 0) != 1)
				usleep(100);
		if (i % 64 == 0)
			usleep(rand_r(&seed) % 500);
	}
	return NULL;
}

static void round_with(const char *name, int f)
{
	struct epoll_event ev = { .events = EPOLLIN };
	pthread_t c[THREADS], p[2];
	uint64_t one = 1;
	int i;

	flags = f;
	counted = 0;
	ep = MUST(epoll_create1(0));
	end = MUST(eventfd(0, 0));
	ev.data.fd = end;
	MUST(epoll_ctl(ep, EPOLL_CTL_ADD, end, &ev));
	/* Half of the threads wait before there is anything of the node in it. */
	for (i = 0; i < THREADS / 2; i++)
		pthread_create(&c[i], NULL, consumer, NULL);
	for (i = 0; i < PAIRS; i++) {
		ev.events = EPOLLIN | flags;
		ev.data.fd = pipes[i][0];
		MUST(epoll_ctl(ep, EPOLL_CTL_ADD, pipes[i][0], &ev));
		ev.data.fd = udp[i][1];
		MUST(epoll_ctl(ep, EPOLL_CTL_ADD, udp[i][1], &ev));
	}
	for (i = THREADS / 2; i < THREADS; i++)
		pthread_create(&c[i], NULL, consumer, NULL);
	for (i = 0; i < 2; i++)
		pthread_create(&p[i], NULL, producer, (void *)(long)(i + f));
	for (i = 0; i < 2; i++)
		pthread_join(p[i], NULL);
	for (i = 0; i < 2000 && counted < 2 * MESSAGES; i++)
		usleep(1000);
	printf("%s: %d of %d\n", name, counted, 2 * MESSAGES);
	/* Level-triggered and never read: every thread has to see it. */
	MUST(write(end, &one, 8));
	for (i = 0; i < THREADS; i++)
		pthread_join(c[i], NULL);
	printf("%s: all ended\n", name);
	fflush(stdout);
	close(ep);
	close(end);
}

int main(void)
{
	int i, big = 1 << 20;

	for (i = 0; i < PAIRS; i++) {
		udp_pair(udp[i]);
		setsockopt(udp[i][1], SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
		fcntl(udp[i][1], F_SETFL, O_NONBLOCK);
		MUST(pipe2(pipes[i], O_NONBLOCK));
		fcntl(pipes[i][0], F_SETPIPE_SZ, big);
	}
	round_with("level", 0);
	round_with("edge", EPOLLET);
	round_with("one-shot", EPOLLONESHOT);
	round_with("exclusive", EPOLLEXCLUSIVE);
	return 0;
}
