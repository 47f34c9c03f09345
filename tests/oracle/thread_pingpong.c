// SPDX-License-Identifier: GPL-2.0
/* Pairs of threads that talk over every kind of socket, at the same time. */
#include "oracle.h"

#define ROUNDS 1000

static void *echo(void *arg)
{
	int fd = *(int *)arg;
	char b[64];
	ssize_t n;

	for (int i = 0; i < ROUNDS; i++) {
		n = recv(fd, b, sizeof(b), 0);
		if (n <= 0 || send(fd, b, n, 0) != n)
			return (void *)1;
	}
	return NULL;
}

static void *ask(void *arg)
{
	int fd = *(int *)arg;
	char b[64], c[64];

	for (int i = 0; i < ROUNDS; i++) {
		int n = snprintf(b, sizeof(b), "message %d of %d", i, fd);

		if (send(fd, b, n, 0) != n || recv(fd, c, sizeof(c), MSG_WAITALL * 0) != n || memcmp(b, c, n))
			return (void *)1;
	}
	return NULL;
}

int main(void)
{
	int pairs[6][2];
	pthread_t t[12];
	long bad = 0;
	void *r;

	tcp_pair(AF_INET, pairs[0]);
	tcp_pair(AF_INET6, pairs[1]);
	udp_pair(AF_INET, pairs[2]);
	udp_pair(AF_INET6, pairs[3]);
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[4]));
	tcp_pair(AF_INET, pairs[5]);
	for (int i = 0; i < 6; i++) {
		t[2 * i] = spawn(echo, &pairs[i][1]);
		t[2 * i + 1] = spawn(ask, &pairs[i][0]);
	}
	for (int i = 0; i < 12; i++) {
		pthread_join(t[i], &r);
		bad += (long)r;
	}
	N(bad);
	return 0;
}
