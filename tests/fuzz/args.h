/* SPDX-License-Identifier: GPL-2.0 */
/*
 * args.h - randomness, memory and descriptors of the system call fuzzer
 *
 * A thread's arena:
 *
 *	[ work 128 KiB | flip 128 KiB | edge 64 KiB | guard 64 KiB, PROT_NONE | read-only page ]
 *
 * Arguments are built in `work`. `flip` is only ever named to the kernel: another thread takes
 * its access rights away and gives them back. What is placed at the end of `edge` is
 * followed by memory that can't be touched, so that one byte read too many fails.
 */
#ifndef FUZZ_ARGS_H
#define FUZZ_ARGS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define KIB		1024UL
#define WORK		(128 * KIB)
#define FLIP		(128 * KIB)
#define EDGE		(64 * KIB)
#define GUARD		(64 * KIB)
#define PAGE		4096UL
#define ARENA		(WORK + FLIP + EDGE + GUARD + PAGE)

#define LAST		16	/* calls remembered of each thread */
#define POOL		192	/* descriptors of a process */

struct call {
	long nr, ret;
	unsigned long a[6];
};

/* What a thread did last; in memory shared with the parent of all, who prints it. */
struct slot {
	uint64_t count;		/* calls begun */
	uint64_t done;
	uint64_t seed;
	int pid;
	bool busy;
	struct call last[LAST];
};

static __thread struct slot *slot;
static __thread uint64_t rng;
static __thread char *arena;
static __thread char *at;	/* next free byte of `work` */
static int pool[POOL];		/* 0: free */

static uint32_t rnd(void)
{
	uint64_t z = (rng += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (uint32_t)(z >> 32);
}

static uint32_t below(uint32_t n)
{
	return n ? rnd() % n : 0;
}

static bool one_in(uint32_t n)
{
	return below(n) == 0;
}

#define PICK(table) ((table)[below(ARRAY_SIZE(table))])

/* A number of the kind that code trips over. */
static uint64_t number(void)
{
	static const uint64_t odd[] = {
		0, 1, 2, 3, 4, 7, 8, 16, 63, 64, 127, 128, 255, 256, 1023, 1500, 4095, 4096, 32767,
		32768, 65535, 65536, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000,
		0x7fffffffffffffff, 0x8000000000000000, ~0ULL, ~0ULL - 1,
	};

	switch (below(4)) {
	case 0: return PICK(odd);
	case 1: return below(16);
	case 2: return below(4096);
	default: return ((uint64_t)rnd() << 32 | rnd()) >> below(64);
	}
}

static void *work(size_t len)
{
	char *p = at;

	len = (len + 15) & ~15UL;
	if (p + len > arena + WORK)
		p = arena;
	at = p + len;
	return p;
}

static void fill(void *to, size_t len)
{
	uint8_t *p = to;
	size_t i;

	switch (below(5)) {
	case 0:
		memset(p, 0, len);
		break;
	case 1:		/* small words */
		for (i = 0; i + 4 <= len; i += 4)
			memcpy(p + i, &(uint32_t){ below(8) }, 4);
		break;
	case 2:
		for (i = 0; i + 8 <= len; i += 8)
			memcpy(p + i, &(uint64_t){ number() }, 8);
		break;
	default:
		for (i = 0; i < len; i++)
			p[i] = (uint8_t)rnd();
	}
}

/* Moves len bytes to where the next byte is out of bounds. */
static void *to_edge(const void *from, size_t len)
{
	char *p = arena + WORK + FLIP + EDGE - len;

	if (len > EDGE)
		return (void *)from;
	return memmove(p, from, len);
}

/* Some bytes; mostly good memory. */
static void *blob(size_t len)
{
	void *p = work(len > 60 * KIB ? 60 * KIB : len);

	fill(p, len > 60 * KIB ? 60 * KIB : len);
	return one_in(4) && len <= 60 * KIB ? to_edge(p, len) : p;
}

static void *bad_pointer(void)
{
	static const unsigned long odd[] = {
		0, 1, 8, 0xfff, 0x1000, ~0UL, ~7UL, -4096UL, 0xffff800000000000UL,
		0x8000000000000000UL, 0x7ffffffff000UL, 0x7fffffffffffUL, 0x800000000000UL,
	};

	switch (below(6)) {
	case 0: return arena + WORK + FLIP + EDGE + below(GUARD);
	case 1: return arena + WORK + FLIP + EDGE + GUARD + below(PAGE);	/* read-only */
	case 2: return arena + WORK + FLIP + EDGE - 1 - below(64);		/* crosses */
	case 3: return arena + WORK + below(FLIP);
	default: return (void *)PICK(odd);
	}
}

/* The pointer that was meant, or now and then another. */
static void *maybe(void *p)
{
	return one_in(24) ? bad_pointer() : p;
}

static long call(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
		 unsigned long e, unsigned long f)
{
	struct call *it = &slot->last[slot->count % LAST];

	*it = (struct call){ .nr = nr, .ret = -9999, .a = { a, b, c, d, e, f } };
	__atomic_store_n(&slot->count, slot->count + 1, __ATOMIC_RELEASE);
	it->ret = syscall(nr, a, b, c, d, e, f);
	if (it->ret == -1)
		it->ret = -errno;
	__atomic_store_n(&slot->done, slot->count, __ATOMIC_RELEASE);
	return it->ret;
}

#define U(x) ((unsigned long)(x))
#define CALL1(nr, a)			call(nr, U(a), 0, 0, 0, 0, 0)
#define CALL2(nr, a, b)			call(nr, U(a), U(b), 0, 0, 0, 0)
#define CALL3(nr, a, b, c)		call(nr, U(a), U(b), U(c), 0, 0, 0)
#define CALL4(nr, a, b, c, d)		call(nr, U(a), U(b), U(c), U(d), 0, 0)
#define CALL5(nr, a, b, c, d, e)	call(nr, U(a), U(b), U(c), U(d), U(e), 0)
#define CALL6(nr, a, b, c, d, e, f)	call(nr, U(a), U(b), U(c), U(d), U(e), U(f))

/* A descriptor of ours; never 0, 1, 2 or one that was not made here. */
static int any_fd(void)
{
	static const int odd[] = { -1, -100, 60000, 65535, 65536, 1 << 20, 0x7fffffff };
	int tries, fd;

	if (one_in(64))
		return PICK(odd);
	for (tries = 0; tries < 8; tries++) {
		fd = __atomic_load_n(&PICK(pool), __ATOMIC_RELAXED);
		if (fd)
			return fd;
	}
	return -1;
}

static void keep_fd(long fd)
{
	int old;

	if (fd <= 2)
		return;
	old = __atomic_exchange_n(&PICK(pool), (int)fd, __ATOMIC_RELAXED);
	if (old)
		CALL1(SYS_close, old);
}

static bool arena_new(void)
{
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (arena == MAP_FAILED)
		return false;
	mprotect(arena + WORK + FLIP + EDGE, GUARD, PROT_NONE);
	mprotect(arena + WORK + FLIP + EDGE + GUARD, PAGE, PROT_READ);
	at = arena;
	return true;
}

#endif
