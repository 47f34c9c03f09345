/* SPDX-License-Identifier: GPL-2.0 */
/*
 * taken.h - a node whose kernel text a program has written to
 *
 * take_over() writes a system call into the text of the node's kernel, through the alias that each process of the node has mapped writable.
 * User Dispatch leaves that range alone: the host gets the calls that direct() makes from there as they are, and neither gate nor node sees them.
 */
#ifndef TAKEN_H
#define TAKEN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ring3.h"
#include "ring3_space.h"

static void *gadget;

/* Returns what the host said: a result, or an error as a negative number. */
static inline long direct(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	asm volatile("call *%[to]"
		     : "=a" (ret)
		     : "a" (nr), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9), [to] "r" (gadget)
		     : "rcx", "r11", "memory");
	return ret;
}

static void take_over(void)
{
	unsigned char code[] = { 0x0f, 0x05, 0xc3 }, resident;
	unsigned long i;

	for (i = 0; i < RING3_SLOTS; i++) {
		char *base = (char *)RING3_SPACE_BASE + i * RING3_SLOT_SIZE;
		struct ring3_region *region = (void *)base;
		unsigned long at;

		if (mincore(base, 4096, &resident))
			continue;
		/* The page's end, behind the last function. */
		at = region->text_end - 16;
		memcpy(base + RING3_ALIAS_OFFSET + at, code, sizeof(code));
		gadget = base + at;
		return;
	}
	puts("take-over: no node is mapped here");
	exit(1);
}

#endif
