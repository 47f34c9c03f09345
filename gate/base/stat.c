// SPDX-License-Identifier: GPL-2.0
/*
 * stat.c - counts the calls of each way in: RING3_STAT_*
 */
#include "internal.h"

/* Adds this thread's counts to the node's. */
void stat_flush(void)
{
	struct ring3_thread *t = gate_thread();
	u32 i;

	if (!gate.region)
		return;
	for (i = 0; i < RING3_STAT_COUNTS; i++) {
		u64 n = t->gate[WORD_COUNTS + i];

		/* Subtract instead of clearing: a signal handler may have counted meanwhile. */
		t->gate[WORD_COUNTS + i] -= n;
		if (n)
			__atomic_fetch_add(&gate.region->stat[i], n, __ATOMIC_RELAXED);
	}
}
