/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_stat.h - what gates count of calls, and where the keeper finds it
 *
 * A thread counts in words of its own block, thread->gate[], without atomics. Each time it has
 * made RING3_STAT_BATCH calls that need the gate, and when it ends or executes another program, it
 * adds them to the node's, region->stat[]. So the
 * node's counts lack what live threads have made since then, and what killed ones had.
 *
 * region->late is apart: how many waits ended by their time limit although a wake-up was due. The thread slept for the vCPU,
 * nothing says so any more, and nobody was woken since; or for a result, which is there. A wake-up
 * was lost then, so this is 0 on a sound node. A thread that is killed while it owes wake-ups may add to it.
 *
 * Numbers only: assembly includes it.
 */
#ifndef RING3_STAT_H
#define RING3_STAT_H

/* Indexes of region->stat[]. */
#define RING3_STAT_DIRECT	0	/* a rewritten site, straight to the host */
#define RING3_STAT_STRAIGHT	1	/* a rewritten site, straight to the node */
#define RING3_STAT_ENTERED	2	/* a rewritten site, with a closer look by the gate */
#define RING3_STAT_TRAPPED	3	/* a signal: SIGSYS, or SIGSEGV in the middle of a site */
#define RING3_STAT_PASSED	4	/* of ENTERED and TRAPPED: the host's, as they came */
#define RING3_STAT_COUNTS	5

#define RING3_STAT_BATCH	64

#endif /* RING3_STAT_H */
