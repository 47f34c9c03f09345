// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * passthrough - what a system call costs that is the host's in any case
 *
 * passthrough NAME prints one figure: nanoseconds for one call, the median of BATCHES
 * batches of CALLS calls each, after WARM batches that don't count. The batches are short, so
 * that most of them run without an interruption. Without a name: the names. With a second
 * argument Syscall User Dispatch is armed before, with all of user memory exempt. It stays on one processor:
 * two of the same machine may differ by some nanoseconds, too.
 *
 *   getppid	no arguments
 *   read	a descriptor, of the host's: whose it is has to be looked at first
 *   lseek	the same, by another shape of call site
 */
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define WARM	20
#define BATCHES	1001
#define CALLS	200

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH	59
#define PR_SYS_DISPATCH_ON		1
#endif

static int fd;

static long call_getppid(void)
{
	return getppid();
}

static long call_read(void)
{
	char c;

	return read(fd, &c, 0);
}

static long call_lseek(void)
{
	return lseek(fd, 0, SEEK_SET);
}

static const struct {
	const char *name;
	long (*call)(void);
} calls[] = {
	{ "getppid", call_getppid },
	{ "read", call_read },
	{ "lseek", call_lseek },
};
#define NAMES	(sizeof(calls) / sizeof(calls[0]))

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

static int measure(long (*call)(void))
{
	static double batch[BATCHES];

	for (int i = -WARM; i < BATCHES; i++) {
		double start = now_ns();

		for (int n = 0; n < CALLS; n++) {
			if (call() < 0) {
				perror("call");
				return 1;
			}
		}
		if (i >= 0)
			batch[i] = (now_ns() - start) / CALLS;
	}
	qsort(batch, BATCHES, sizeof(batch[0]), ascending);
	printf("%.2f\n", batch[BATCHES / 2]);
	return 0;
}

static void stay(void)
{
	cpu_set_t may, first;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(may), &may))
		return;
	while (!CPU_ISSET(cpu, &may))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	sched_setaffinity(0, sizeof(first), &first);
}

int main(int argc, char **argv)
{
	stay();
	fd = open("/dev/null", O_RDONLY);
	if (fd < 0) {
		perror("/dev/null");
		return 1;
	}
	if (argc > 2 && prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 4096UL,
			      0x7ffffffff000UL - 4096, 0UL)) {
		perror("Syscall User Dispatch");
		return 1;
	}
	for (size_t i = 0; i < NAMES; i++) {
		if (argc < 2)
			puts(calls[i].name);
		else if (!strcmp(argv[1], calls[i].name))
			return measure(calls[i].call);
	}
	return argc >= 2;
}
