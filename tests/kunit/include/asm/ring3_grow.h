/* SPDX-License-Identifier: GPL-2.0 */
/* What kernel/patches/0005 asks the port, answered as Linux without the patch does: for UML (tests/kunit/uml). */
#ifndef _ASM_RING3_GROW_H
#define _ASM_RING3_GROW_H

#include <linux/types.h>

struct zone;

static inline bool ring3_pfn_waits(unsigned long pfn)
{
	return false;
}

static inline bool ring3_memory_waits(void)
{
	return false;
}

static inline bool ring3_grow(struct zone *zone)
{
	return false;
}

#endif
