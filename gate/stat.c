// SPDX-License-Identifier: GPL-2.0
/*
 * stat.c - how many calls came by which way: ring3_stat.h
 */
#include "internal.h"

/* Adds this thread's counts to the node's. */
void stat_flush(void)
{
	struct ring3_thread *t = gate_thread();
	u64 *total;
	u32 i;

	if (!gate.region)
		return;
	total = (u64 *)gate.region->init_proc.reserved;
	for (i = 0; i < RING3_STAT_COUNTS; i++) {
		u64 n = t->gate[RING3_STAT_DIRECT + i];

		/* Subtracted, not cleared: a handler may have counted meanwhile. */
		t->gate[RING3_STAT_DIRECT + i] -= n;
		if (n)
			__atomic_fetch_add(&total[i], n, __ATOMIC_RELAXED);
	}
}
