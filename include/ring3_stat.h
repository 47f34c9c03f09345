/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_stat.h - what the gate counts of each thread's calls, and where the keeper finds it
 *
 * A thread counts in words of its own block, thread->gate[], without atomics. The live threads
 * of a process are a list: ring3_stat_list(proc) is the address of the newest one's block,
 * gate[RING3_STAT_NEXT] that of the next, 0 ends it. Whoever reads it has to be prepared to
 * find a block that has changed hands meanwhile: its `proc' is another.
 *
 * A thread that ends, and a process that ends or executes another program, adds its counts to
 * those of the node: ring3_stat_total(region->init_proc), atomically. For a process that was
 * killed the keeper does it, before REAP.
 *
 * Numbers only: assembly includes it.
 */
#ifndef RING3_STAT_H
#define RING3_STAT_H

/* Words of ring3_thread.gate[]. */
#define RING3_STAT_DIRECT	5	/* a rewritten site, straight to the host */
#define RING3_STAT_STRAIGHT	6	/* a rewritten site, straight to the node */
#define RING3_STAT_ENTERED	7	/* a rewritten site, with a closer look by the gate */
#define RING3_STAT_TRAPPED	8	/* a signal: SIGSYS, or SIGSEGV in the middle of a site */
#define RING3_STAT_PASSED	9	/* of ENTERED and TRAPPED: the host's, as they came */
#define RING3_STAT_NEXT		10	/* address of the next thread's block */

/* The counts are DIRECT .. PASSED: so many u64 from ring3_proc.reserved[0] on, in init_proc. */
#define RING3_STAT_COUNTS	5

#endif /* RING3_STAT_H */
