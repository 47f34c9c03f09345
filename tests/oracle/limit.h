/* SPDX-License-Identifier: GPL-2.0 */
/*
 * limit.h - for programs about one limit of memory: LIMIT is its number, PROT the protection of mappings that it counts
 */
#ifndef ORACLE_LIMIT_H
#define ORACLE_LIMIT_H

#include "oracle.h"

#define MIB	(1ul << 20)

static void show(const char *what)
{
	struct rlimit r = { 0 }, p = { 0 };

	must(getrlimit(LIMIT, &r));
	must(prlimit(getpid(), LIMIT, NULL, &p));
	say("%s: %ld %ld, the same by prlimit: %d", what, (long)r.rlim_cur, (long)r.rlim_max,
	    r.rlim_cur == p.rlim_cur && r.rlim_max == p.rlim_max);
}

/* How many MiB; libraries have some already. */
static long can_map(void)
{
	long n = 0;

	while (n < 4096 && mmap(NULL, MIB, PROT, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		n++;
	return n;
}

static void end(const char *what, pid_t pid)
{
	int s;

	must(waitpid(pid, &s, 0));
	say("%s: %s %d", what, WIFEXITED(s) ? "exit" : "signal", WIFEXITED(s) ? WEXITSTATUS(s) : WTERMSIG(s));
}

#endif
