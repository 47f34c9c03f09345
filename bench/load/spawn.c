// SPDX-License-Identifier: GPL-2.0
/*
 * spawn - what it costs to start a small program and see it end
 *
 * spawn WAY prints one figure: microseconds from before the call until the child has been
 * waited for, the median of ROUNDS after WARM that don't count. Without a way: the ways.
 *
 *   spawn	posix_spawn of /bin/true
 *   static	posix_spawn of this program itself (linked statically), which then ends at once
 *   fork	fork and exec of /bin/true
 *   fork-big	the same by a process of which FAT_BYTES are resident
 *   fork-only	fork by such a process, and the child ends
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WARM	20
#define ROUNDS	301
#define FAT_BYTES	(100UL << 20)

extern char **environ;
static char *self;

static pid_t start(const char *program, char *argument)
{
	char *argv[] = { (char *)program, argument, NULL };
	pid_t pid;

	return posix_spawn(&pid, program, NULL, NULL, argv, environ) ? -1 : pid;
}

static pid_t way_spawn(void)
{
	return start("/bin/true", NULL);
}

static pid_t way_static(void)
{
	return start(self, "end");
}

static pid_t way_fork(void)
{
	pid_t pid = fork();

	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(127);
	}
	return pid;
}

static pid_t way_fork_only(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid;
}

static const struct {
	const char *name;
	pid_t (*start)(void);
} ways[] = {
	{ "spawn", way_spawn },
	{ "static", way_static },
	{ "fork", way_fork },
	{ "fork-big", way_fork },
	{ "fork-only", way_fork_only },
};
#define WAYS	(sizeof(ways) / sizeof(ways[0]))

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static int measure(pid_t (*begin)(void))
{
	static double took[ROUNDS];

	for (int i = -WARM; i < ROUNDS; i++) {
		double from = now_us();
		int status;

		if (waitpid(begin(), &status, 0) < 0 || status) {
			fprintf(stderr, "the child did not run\n");
			return 1;
		}
		if (i >= 0)
			took[i] = now_us() - from;
	}
	qsort(took, ROUNDS, sizeof(took[0]), ascending);
	printf("%.1f\n", took[ROUNDS / 2]);
	return 0;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "end"))
		return 0;
	if (argc > 1 && !strncmp(argv[1], "fork-", 5)) {
		char *fat = malloc(FAT_BYTES);

		if (!fat)
			return 1;
		memset(fat, 1, FAT_BYTES);
		__asm__ volatile("" : : "r"(fat) : "memory");	/* else the compiler leaves it out */
	}
	for (size_t i = 0; i < WAYS; i++) {
		if (argc < 2)
			puts(ways[i].name);
		else if (!strcmp(argv[1], ways[i].name))
			return measure(ways[i].start);
	}
	return argc >= 2;
}
