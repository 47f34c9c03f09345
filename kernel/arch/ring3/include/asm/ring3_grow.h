/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_GROW_H
#define _ASM_RING3_GROW_H

#include <linux/memblock.h>
#include <linux/types.h>

struct zone;

/* grow.c: pages from here on have not been asked for; pfn. */
extern unsigned long ring3_grown;

static inline bool ring3_pfn_waits(unsigned long pfn)
{
	return pfn >= ring3_grown;
}

static inline bool ring3_memory_waits(void)
{
	return ring3_grown < max_pfn;
}

/* Gives the allocator more of them; false: there are none. */
bool ring3_grow(struct zone *zone);

void ring3_grow_reserve(void);
void ring3_grow_account(void);

/* trim.c: gives pages back that the boot has left without use. */
void ring3_trim(void);

#endif
