/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_stat.h - what gates count of calls, and where the keeper finds it
 *
 * A thread counts in words of its own block, thread->gate[], without atomics. Each time it has
 * made RING3_STAT_BATCH calls that need the gate, and when it ends or executes another program, it
 * adds them to the node's: so many u64 in region->init_proc.reserved, in the same order. So the
 * node's counts lack what live threads have made since then, and what killed ones had.
 *
 * Numbers only: assembly includes it.
 */
#ifndef RING3_STAT_H
#define RING3_STAT_H

/* Words of ring3_thread.gate[], the first of which is word 0 of the node's. */
#define RING3_STAT_DIRECT	5	/* a rewritten site, straight to the host */
#define RING3_STAT_STRAIGHT	6	/* a rewritten site, straight to the node */
#define RING3_STAT_ENTERED	7	/* a rewritten site, with a closer look by the gate */
#define RING3_STAT_TRAPPED	8	/* a signal: SIGSYS, or SIGSEGV in the middle of a site */
#define RING3_STAT_PASSED	9	/* of ENTERED and TRAPPED: the host's, as they came */
#define RING3_STAT_COUNTS	5

#define RING3_STAT_BATCH	64

#endif /* RING3_STAT_H */
