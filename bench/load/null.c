// SPDX-License-Identifier: GPL-2.0
/*
 * null - what a system call on a socket costs when there is nothing to do
 *
 * Prints one figure: nanoseconds for one fcntl(fd, F_GETFL), the median of BATCHES
 * batches of CALLS calls each, after WARM batches that don't count. The same binary
 * runs on the host and on a node; `run` takes turns between the two.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define WARM	5
#define BATCHES	41
#define CALLS	20000

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	double batch[BATCHES];
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0) {
		perror("socket");
		return 1;
	}
	for (int i = -WARM; i < BATCHES; i++) {
		double start = now_ns();

		for (int n = 0; n < CALLS; n++)
			if (fcntl(fd, F_GETFL) < 0) {
				perror("fcntl");
				return 1;
			}
		if (i >= 0)
			batch[i] = (now_ns() - start) / CALLS;
	}
	qsort(batch, BATCHES, sizeof(batch[0]), ascending);
	printf("%.2f\n", batch[BATCHES / 2]);
	return 0;
}
