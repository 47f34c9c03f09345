/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_GROW_H
#define _ASM_RING3_GROW_H

#include <linux/log2.h>
#include <linux/memblock.h>
#include <linux/mm.h>
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

/* trim.c: gives pages back, that the boot has left without use, and that are free. */
void ring3_trim(void);
void ring3_trim_free(void);

/* populate.c: a bit for each page that the host has given; by pfn. */
extern unsigned long ring3_resident[];

void ring3_populate(unsigned long pfn, unsigned long pages);
void ring3_populate_start(void);

/* Pages that the allocator is about to hand out; 1 << order of them, at a multiple of that. */
static inline void ring3_alloc_page(struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), bits = ~0UL;

	if (order < ilog2(BITS_PER_LONG))
		bits = ((1UL << (1U << order)) - 1) << (pfn % BITS_PER_LONG);
	if (unlikely((~ring3_resident[pfn / BITS_PER_LONG] & bits) || order > ilog2(BITS_PER_LONG)))
		ring3_populate(pfn, 1UL << order);
}

/* HAVE_ARCH_ALLOC_PAGE's hook, for the allocator's file alone: no other calls it. */
#define arch_alloc_page(page, order)	ring3_alloc_page(page, order)

#endif
