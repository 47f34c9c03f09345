// SPDX-License-Identifier: GPL-2.0
/*
 * heap.c - the gate's memory, and copies from and to the program's
 *
 * Sizes that are powers of two from 32 bytes to 16 KiB come off free lists, which are refilled 64 KiB at a time.
 * Each larger block is a mapping of its own. All of it lies in the upper part of the gate's own address range,
 * where the program maps nothing.
 */
#include "gate.h"
#include "internal.h"

#define HEAP_BASE	(RING3_GATE_BASE + (16UL << 30))
#define CLASS_MIN	5	/* 32 bytes */
#define CLASS_MAX	14	/* 16 KiB */
#define CHUNK		(64UL << 10)
#define CHUNKS_FIRST	8		/* a process with few descriptors uses 4 */

struct header {
	u64 size;		/* class number, or bytes of the mapping */
	struct header *next;
};

struct gate_mutex gate_heap_lock;
static struct header *lists[CLASS_MAX + 1] GATE_TABLE;	/* freed blocks */
static char *fresh[CLASS_MAX + 1] GATE_TABLE;		/* room that has never been handed out */
static size_t left[CLASS_MAX + 1] GATE_TABLE;
/* The first chunks: with the gate's other pages they have one mapping and one page table, which each fork copies. */
static char first[CHUNKS_FIRST][CHUNK] GATE_TABLE __attribute__((aligned(GATE_PAGE)));
static u32 firsts_used;
static u64 bump;		/* from HEAP_BASE on */

static long own_pages(u64 hint, size_t size, int kind)
{
	return host_syscall6(__NR_mmap, hint, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
}

static void *pages(size_t size, int kind)
{
	u64 hint;
	long p;

	size = page_align(size);
	/* Without gaps, so that the host joins them to one mapping: each makes a fork 2 us slower. */
	hint = HEAP_BASE + __atomic_fetch_add(&bump, size, __ATOMIC_RELAXED);
	if (hint + size > RING3_SPACE_BASE)
		hint = 0;	/* the range is used up: the host may choose any address */
	p = own_pages(hint, size, kind);
	if (unlikely(p == -ENOMEM) && gate_life.grow(size))
		p = own_pages(hint, size, kind);
	return HOST_IS_ERR(p) ? NULL : (void *)p;
}

void *gate_pages(size_t size)
{
	return pages(size, MAP_PRIVATE);
}

void *gate_pages_shared(size_t size)
{
	return pages(size, MAP_SHARED);
}

void gate_pages_free(void *p, size_t size)
{
	host_syscall2(__NR_munmap, (long)p, page_align(size));
}

static int class_of(size_t bytes)
{
	int c = CLASS_MIN;

	while ((1UL << c) < bytes)
		c++;
	return c;
}

void *gate_alloc(size_t size)
{
	size_t bytes = size + sizeof(struct header);
	struct header *h;
	int c;

	if (bytes > 1UL << CLASS_MAX) {
		h = gate_pages(bytes);
		if (!h)
			return NULL;
		h->size = page_align(bytes);
		return h + 1;
	}
	c = class_of(bytes);
	gate_lock(&gate_heap_lock);
	if (!lists[c] && left[c] < 1UL << c) {
		fresh[c] = firsts_used < CHUNKS_FIRST ? first[firsts_used++] : gate_pages(CHUNK);
		left[c] = fresh[c] ? CHUNK : 0;
	}
	h = lists[c];
	if (h) {
		lists[c] = h->next;
	} else if (left[c]) {
		h = (struct header *)fresh[c];
		fresh[c] += 1UL << c;
		left[c] -= 1UL << c;
	}
	gate_unlock(&gate_heap_lock);
	if (!h)
		return NULL;
	h->size = c;
	return memset(h + 1, 0, size);
}

void gate_free(void *p)
{
	struct header *h = p;

	if (!p)
		return;
	h--;
	if (h->size > CLASS_MAX) {
		gate_pages_free(h, h->size);
		return;
	}
	gate_lock(&gate_heap_lock);
	h->next = lists[h->size];
	lists[h->size] = h;
	gate_unlock(&gate_heap_lock);
}

long gate_copy_in(void *dst, const void *user, size_t n)
{
	return gate_copy_raw(dst, user, n);
}

long gate_copy_out(void *user, const void *src, size_t n)
{
	return gate_copy_raw(user, src, n);
}

long gate_strncpy_in(char *dst, const void *user, size_t size)
{
	return gate_strncpy_raw(dst, user, size);
}
