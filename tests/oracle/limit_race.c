// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_AS of a process that uses all of it: threads start others, three at a time, while one sets the same limit again and
 * again. What is read at the end is what was set.
 */
#include "oracle.h"
#include <malloc.h>

#define MIB		(1ul << 20)
#define LIMIT		(512 * MIB)
#define STACK		(64ul << 10)
#define STARTERS	3
#define EACH		16	/* threads that live at the same time, of each starter */
#define ROUNDS		3

static char stacks[STARTERS][EACH][STACK] __attribute__((aligned(4096)));
static char starters[STARTERS + 1][STACK] __attribute__((aligned(4096)));
static pthread_barrier_t begin;
static volatile int over;

static void start(pthread_t *t, void *stack, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	int e = pthread_create(t, &attr, fn, arg);
	if (e) {
		say("no thread: %d", e);
		exit(2);
	}
}

static void *reads(void *arg)
{
	char c;

	return (void *)(long)read(*(int *)arg, &c, 1);
}

static int pair[2];

static void *starts(void *arg)
{
	pthread_t all[EACH];
	int i, me = (long)arg;

	pthread_barrier_wait(&begin);
	for (i = 0; i < EACH; i++)
		start(&all[i], stacks[me][i], reads, &pair[0]);
	for (i = 0; i < EACH; i++)
		must(send(pair[1], "x", 1, 0));
	for (i = 0; i < EACH; i++)
		pthread_join(all[i], NULL);
	return NULL;
}

static void *sets(void *arg)
{
	const struct rlimit lim = { LIMIT, RLIM_INFINITY };

	(void)arg;
	pthread_barrier_wait(&begin);
	while (!over)
		must(setrlimit(RLIMIT_AS, &lim));
	return NULL;
}

static int once(bool with_setter)
{
	void *volatile reserve;
	const struct rlimit lim = { LIMIT, RLIM_INFINITY };
	pthread_t all[STARTERS], setter;
	struct rlimit now;
	size_t size;
	long i;

	/* The heap has the memory that pthread_create() takes. */
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 16 << 20);
	reserve = malloc(4 * MIB);
	free(reserve);
	must(setrlimit(RLIMIT_AS, &lim));
	for (size = 64 * MIB; size >= 4096; size /= 2)
		while (mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED)
			;
	pthread_barrier_init(&begin, NULL, STARTERS + with_setter);
	for (i = 0; i < STARTERS; i++)
		start(&all[i], starters[i], starts, (void *)i);
	if (with_setter)
		start(&setter, starters[STARTERS], sets, NULL);
	for (i = 0; i < STARTERS; i++)
		pthread_join(all[i], NULL);
	over = 1;
	if (with_setter)
		pthread_join(setter, NULL);
	must(getrlimit(RLIMIT_AS, &now));
	return now.rlim_cur == LIMIT && now.rlim_max == RLIM_INFINITY ? 0 : 1;
}

static void rounds(const char *what, bool with_setter)
{
	int i, s, wrong = 0;
	pid_t pid;

	for (i = 0; i < ROUNDS; i++) {
		pid = must(fork());
		if (!pid)
			exit(once(with_setter));
		must(waitpid(pid, &s, 0));
		wrong += s != 0;
	}
	say("%s: wrong %d", what, wrong);
}

int main(void)
{
	alarm(120);
	tcp_pair(AF_INET, pair);
	rounds("threads", false);
	rounds("threads and setrlimit()", true);
	return 0;
}
