/* SPDX-License-Identifier: GPL-2.0 */
/* tuning.h - constants of the vCPU's waiting, polling and sleeping */
#ifndef RING3_VCPU_TUNING_H
#define RING3_VCPU_TUNING_H

#define ACQUIRE_TURNS		4		/* of pause between two looks, some 0.3 us */
#define GONE_LOOKS		3		/* at a free vCPU: nobody is making calls */
#define ACQUIRE_NEW_NS		1500ULL		/* a new call leaves the holder alone for so long */
#define ACQUIRE_SPIN_NS		50000ULL	/* of waiting awake, with the CPU given away every */
#define ACQUIRE_YIELD_NS	2000ULL		/* so often: the holder may have to run on it; */
#define ACQUIRE_CROWDED_NS	8000ULL		/* of waiting awake where the CPUs are crowded */
#define DRAIN_TURNS		16		/* of pause, some 1 us: longer than a store takes to arrive */
#define GIVE_WAY_TURNS		32		/* for as long as a waiter that is awake takes to take over */
#define SPIN_WAIT		100		/* turns of pause, some 8 us, */
#define SPIN_WAIT_YIELD		25		/* with the CPU given away every so often */
#define SPIN_MIN_NS		2000ULL		/* of idle polling; the cap is region->spin_ns */
#define COMES_NS		15000ULL	/* a called thread that has a CPU is there by then */
#define YIELDED_NS		2000ULL		/* away for longer than the system call takes */
#define CROWDED_NS		30000ULL	/* away for longer than a peer needs for a packet */
#define CROWDED_TIMES		4		/* for so many times as long nobody polls or yields then */
#define COMPUTES_NS		500000ULL	/* away for longer than anybody but one that computes takes: */
#define CROWDED_FIRST_NS	10000000ULL	/* nobody does so for this long, and for twice as long where */
#define CROWDED_MAX_NS		160000000ULL	/* that is found again soon after, this long at most */
#define ACQUIRE_SLEEP_NS	8000000L	/* who was woken may have died before it took the vCPU */
#define ACQUIRE_TIMEOUT_NS	100000000L	/* then see whether the holder still lives */
#define WAIT_TIMEOUT_NS		800000000L	/* then see whether the keeper still lives */
#define KEEP_AGAIN_NS		50000ULL	/* somebody else should have seen it by then */
#define KEEP_WATCH_NS		1000000ULL	/* a program that stopped making calls */
#define KEEP_SEEN_NS		4000000ULL	/* one that made some so lately only waits for its CPU */
#define AWAY_NS			20000000ULL	/* one that watches may be stopped; then doorbells wait so long */
#define HOLDER_NS		100000000ULL	/* of one holder: then see whether it still lives */
#define PORTS_REST_NS		100000U		/* a packet waits no longer for a program that computes, */
#define PORTS_REST_DOUBLES	3		/* and eight times as long for one that has only just begun to */
#define SPIN_DRIVE		16		/* turns, for as long as a store takes to be seen: DRAIN_TURNS */
#define SLACK_MS		50U		/* so often a thread is asked for its timer slack; of 1.05 ms */
#define KEEP_HOT_EACH_NS	300000ULL	/* a node goes idle, or kicks KEEP, so often: then for */
#define KEEP_HOT_NS		4000000ULL	/* so long KEEP comes with each tick, and nobody kicks or waits for one */
#define KEEP_LATE_NS		5000ULL		/* so much later than a deadline KEEP may come without being told */
#define TICK_NS			1000000ULL	/* of HZ=1000 */
#define ADOPT_NS	2000000000ULL	/* for a starved adopter */

#endif
