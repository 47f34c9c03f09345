// SPDX-License-Identifier: GPL-2.0
/*
 * jitter - datagrams with the time of their sending
 *
 *	jitter hear PORT
 *	jitter send ADDRESS PORT SIZE RATE SECONDS	(RATE 0: as fast as the socket takes them)
 *
 * The receiver prints JSON: datagrams, those that were lost, Mbit/s of payload from the first to the last, and of the transit
 * times the mean, the mean difference of neighbours (RFC 3550's jitter, not smoothed), and the largest distance from the mean.
 * Both ends are on one machine: they have one clock.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAX_COUNT	(1 << 23)	/* datagrams of a measurement: 8 s at a million a second */

struct stamp {
	uint64_t number, ns;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static int hear(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct timeval patience = { .tv_sec = 20 }, silence = { .tv_usec = 700000 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), size = 16 << 20;
	int32_t *transit = mmap(NULL, MAX_COUNT * sizeof(*transit), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t first = 0, last = 0, bytes = 0, count = 0, highest = 0, i;
	double sum = 0, differences = 0, furthest = 0, mean;
	static char buf[65536];

	if (fd < 0 || transit == MAP_FAILED || bind(fd, (void *)&at, sizeof(at)))
		die("listen");
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	puts("ready");
	fflush(stdout);
	while (count < MAX_COUNT) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		struct stamp *stamp = (void *)buf;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < (ssize_t)sizeof(*stamp))
			break;
		last = now();
		if (!count) {
			first = last;
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof(silence));
		}
		transit[count++] = last - stamp->ns > INT32_MAX ? INT32_MAX : last - stamp->ns;
		bytes += got;
		if (stamp->number > highest)
			highest = stamp->number;
	}
	if (count < 2)
		die("nothing came");
	for (i = 0; i < count; i++)
		sum += transit[i];
	mean = sum / count;
	for (i = 0; i < count; i++) {
		double far = transit[i] > mean ? transit[i] - mean : mean - transit[i];

		if (far > furthest)
			furthest = far;
		if (i)
			differences += abs(transit[i] - transit[i - 1]);
	}
	printf("{\"count\": %lu, \"lost\": %lu, \"mbit\": %.1f, \"transit_us\": %.2f, \"jitter_us\": %.3f, \"max_us\": %.1f}\n",
	       count, highest + 1 - count, bytes * 8000.0 / (last - first), mean / 1000, differences / (count - 1) / 1000,
	       furthest / 1000);
	return 0;
}

static int send_all(const char *address, int port, int size, double rate, double seconds)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	uint64_t start = now(), end = start + seconds * 1e9, number = 0;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	static char buf[65536];
	struct stamp *stamp = (void *)buf;

	if (inet_pton(AF_INET, address, &to.sin_addr) != 1 || connect(fd, (void *)&to, sizeof(to)))
		die("connect");
	for (;;) {
		if (rate > 0) {
			uint64_t due = start + number * (1e9 / rate);
			struct timespec t = { .tv_sec = due / 1000000000, .tv_nsec = due % 1000000000 };

			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
				;
		}
		stamp->number = number;
		stamp->ns = now();
		if (stamp->ns >= end)
			break;
		if (send(fd, buf, size, 0) < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
			die("send");
		number++;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "hear"))
		return hear(atoi(argv[2]));
	if (argc == 7 && !strcmp(argv[1], "send"))
		return send_all(argv[2], atoi(argv[3]), atoi(argv[4]), atof(argv[5]), atof(argv[6]));
	fputs("usage: jitter hear PORT | send ADDRESS PORT SIZE RATE SECONDS\n", stderr);
	return 2;
}
