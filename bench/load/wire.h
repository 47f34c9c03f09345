/* SPDX-License-Identifier: GPL-2.0 */
/*
 * wire.h - what the load programs share
 *
 * Each program has two ends, `serve` and `ask`, and runs unmodified on the host and on
 * a node. The serving end prints a line when it listens and ends by itself when the
 * asking end is done. The asking end prints its figures, a line "KEY VALUE" each.
 */
#ifndef WIRE_H
#define WIRE_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS	1000000000ull
#define SIZE_MAX_SENT	(1 << 20)	/* bytes: of one write */

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS + t.tv_nsec;
}

static inline void out(const char *key, double value)
{
	printf("%s %.3f\n", key, value);
}

static inline struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (!inet_aton(host, &a.sin_addr)) {
		fprintf(stderr, "%s: not an address\n", host);
		exit(2);
	}
	return a;
}

static inline void no_delay(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("TCP_NODELAY");
}

/* A socket that listens (SOCK_STREAM) or is bound (SOCK_DGRAM) on every address. */
static inline int serve_on(int type, const char *port, int backlog)
{
	struct sockaddr_in a = address("0.0.0.0", port);
	int fd = socket(AF_INET, type, 0), one = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)))
		die("bind");
	if (type == SOCK_STREAM && listen(fd, backlog))
		die("listen");
	return fd;
}

#define RECEIVE_BUFFER	(4 << 20)	/* bytes, as the peers of bench/peers have */

/* Of datagrams that may wait. The host's limit for it is none for root. */
static inline void receive_buffer(int fd)
{
	int size = RECEIVE_BUFFER;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)))
		die("SO_RCVBUF");
}

static inline int connect_to(int type, const char *host, const char *port)
{
	struct sockaddr_in a = address(host, port);
	int fd = socket(AF_INET, type, 0);

	if (fd < 0)
		die("socket");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	return fd;
}

static inline int accept_one(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	return fd;
}

static inline void ready(void)
{
	puts("ready");
	fflush(stdout);
}

/* Exactly n bytes of a stream; 0 at its end. */
static inline int read_all(int fd, void *buf, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, (char *)buf + got, n - got);

		if (r < 0)
			die("read");
		if (!r)
			return 0;
		got += r;
	}
	return 1;
}

static inline void write_all(int fd, const void *buf, size_t n)
{
	size_t put = 0;

	while (put < n) {
		ssize_t r = write(fd, (const char *)buf + put, n - put);

		if (r < 0)
			die("write");
		put += r;
	}
}

static inline int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* A sample of unknown length: keeps every step-th value, so that memory is bounded. */
struct sample {
	double *at;
	size_t n, max, step, seen;
};

static inline void sample_init(struct sample *s)
{
	*s = (struct sample){ .max = 1 << 20, .step = 1 };
	s->at = malloc(s->max * sizeof(*s->at));
	if (!s->at)
		die("malloc");
}

static inline void sample_add(struct sample *s, double v)
{
	if (s->seen++ % s->step)
		return;
	if (s->n == s->max) {
		for (size_t i = 0; i < s->max / 2; i++)
			s->at[i] = s->at[2 * i];
		s->n = s->max / 2;
		s->step *= 2;
	}
	s->at[s->n++] = v;
}

/* Sorts it at the first call. */
static inline double sample_at(struct sample *s, double share)
{
	if (!s->n) {
		fprintf(stderr, "nothing was measured\n");
		exit(1);
	}
	qsort(s->at, s->n, sizeof(*s->at), ascending);
	return s->at[(size_t)(share * (s->n - 1))];
}

#define ENOUGH_FOR_P99	1000	/* of which ten lie above */

/* The 99th percentile; of fewer it would be that of a handful. */
static inline double sample_p99(struct sample *s)
{
	if (s->seen < ENOUGH_FOR_P99) {
		fprintf(stderr, "%zu samples are too few for a 99th percentile\n", s->seen);
		exit(1);
	}
	return sample_at(s, 0.99);
}

/* Seconds all CPUs of the machine were busy so far; in steps of 10 ms. */
static inline double machine_busy(void)
{
	double user, nice, system, idle, iowait, irq, softirq;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
			 &iowait, &irq, &softirq) != 7)
		die("/proc/stat");
	fclose(f);
	return (user + nice + system + irq + softirq) / sysconf(_SC_CLK_TCK);
}

/*
 * A counter of this thread's host system calls; -1 where the host does not permit it.
 * The figure is left out then. Never open while anything is timed: as long as one is, each
 * system call of each process of the machine takes ten times as long.
 */
static inline int host_calls_open(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	FILE *f = fopen("/sys/kernel/tracing/events/raw_syscalls/sys_enter/id", "r");
	unsigned long id;
	int got;

	if (!f)
		return -1;
	got = fscanf(f, "%lu", &id);
	fclose(f);
	if (got != 1)
		return -1;
	attr.config = id;
	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static inline double host_calls(int counter)
{
	uint64_t n;

	if (counter < 0)
		return 0;
	if (read(counter, &n, sizeof(n)) != sizeof(n))
		die("the counter of host system calls");
	return n;
}

static inline void host_calls_close(int counter)
{
	if (counter >= 0)
		close(counter);
}

#endif
