/* SPDX-License-Identifier: GPL-2.0 */
/* bad_memory.h - pointers that a call must refuse, and pointers that are bad half-way */
#ifndef BAD_MEMORY_H
#define BAD_MEMORY_H

#include "oracle.h"

enum bad {
	BAD_NULL,
	BAD_LOW,	/* page 0, not NULL */
	BAD_UNMAPPED,
	BAD_PROT_NONE,
	BAD_READ_ONLY,	/* bad for calls that write to it */
	BAD_KERNEL,	/* upper half */
	BAD_HOLE,	/* not canonical */
	BAD_STRADDLE,	/* starts well, ends in an unmapped page */
	BAD_COUNT
};

static const char * const bad_names[] = {
	"NULL", "low", "unmapped", "PROT_NONE", "read-only", "kernel", "non-canonical", "straddling",
};

static char *bad_pages;

static void bad_init(void)
{
	bad_pages = mmap(NULL, 6 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(bad_pages != MAP_FAILED);
	memset(bad_pages, 0, 6 * 4096);
	must(munmap(bad_pages + 4096, 4096));
	must(mprotect(bad_pages + 3 * 4096, 4096, PROT_NONE));
	must(mprotect(bad_pages + 4 * 4096, 4096, PROT_READ));
}

/* A pointer of that kind to `size` bytes; straddling ones have `size / 2` good bytes. */
static void *bad_pointer(enum bad kind, size_t size)
{
	switch (kind) {
	case BAD_NULL:		return NULL;
	case BAD_LOW:		return (void *)16;
	case BAD_UNMAPPED:	return bad_pages + 4096 + 64;
	case BAD_PROT_NONE:	return bad_pages + 3 * 4096 + 64;
	case BAD_READ_ONLY:	return bad_pages + 4 * 4096 + 64;
	case BAD_KERNEL:	return (void *)0xffff888000001000;
	case BAD_HOLE:		return (void *)0x8000000000001000;
	case BAD_STRADDLE:	return bad_pages + 4096 - size / 2;
	default:		return NULL;
	}
}

#endif /* BAD_MEMORY_H */
