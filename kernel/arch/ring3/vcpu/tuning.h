/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tuning.h - constants of the vCPU's waiting, polling and sleeping
 *
 * A name says its unit: _NS nanoseconds, _MS milliseconds, _TURNS rounds of the pause instruction (40 to 80 ns each).
 * Measurements are of virtual machines with 2 CPUs (AMD EPYC) unless something else is said. Each group names the
 * bench or test that would show a wrong value. "Choice" is a value that nothing was measured for.
 */
#ifndef RING3_VCPU_TUNING_H
#define RING3_VCPU_TUNING_H

/*
 * A waiter for the vCPU: wait.c, lock.c. A hold lasts for microseconds; a sleep and a wake-up take 5 us on the same
 * CPU and 25 to 50 on another. Shown by: `bench/run company`, `bench/run servers`, `bench/run null`.
 */
#define ACQUIRE_TURNS		4		/* of pause between two looks, some 0.3 us */
#define GONE_LOOKS		3		/* looks at a free vCPU, then nobody is making calls. Choice */
#define ACQUIRE_NEW_NS		400ULL		/* a new call leaves the owner alone for so long: some of its calls */
#define ACQUIRE_BUSY_NS		8000ULL		/* the same for a thread that has not slept lately: the calls that others make between two sleeps */
#define BURST_CALLS		8		/* contended calls after a sleep, for which the thread has slept lately: those of a request. Choice */
#define ACQUIRE_LONG_NS		10000ULL	/* from then on the owner is asked to let go before its call is over: longer than most calls take */
#define ACQUIRE_SPIN_NS		50000ULL	/* of waiting awake: what a sleep and a wake-up would take */
#define ACQUIRE_YIELD_NS	2000ULL		/* between two yields of the CPU: the owner may have to run on it */
#define ACQUIRE_CROWDED_NS	8000ULL		/* of waiting awake where the CPUs are contended. Choice: long holds */
#define COPY_LONG		8192		/* bytes, from which a copy is made without the vCPU where threads contend for it */
#define CONTENDED_NS		1000000ULL	/* for so long after that long copies are made without the vCPU. Choice: one tick */
#define GIVE_WAY_TURNS		32		/* the owner that went home leaves the vCPU to a waiter that is awake */

/* Shown by `tests/models vcpu` (plants NoDrain, OneLook), for what they are needed; by `bench/run null` where they are too long. */
#define DRAIN_TURNS		16		/* some 1 us: longer than a store takes to arrive */
#define SPIN_DRIVE		16		/* turns, for the same reason: DRAIN_TURNS */

/* A wait for what others do with this thread's call: wait.c. Shown by: `bench/run company`. */
#define SPIN_WAIT		100		/* turns, some 8 us: what the other end has to do before it answers */
#define SPIN_WAIT_YIELD		25		/* turns between two yields of the CPU */

/* Idle polling: poll.c. Shown by: README's round trips (`make bench-quick`), `bench/run company`. */
#define SPIN_MIN_NS		2000ULL		/* at least; the cap is region->spin_ns. Choice */
#define COMES_NS		15000ULL	/* a thread that was woken and has a CPU is there by then */
#define YIELDED_NS		2000ULL		/* a yield that took longer ran somebody: the call alone takes less than 1 us */

/* Contended CPUs: crowd.c. Shown by: `bench/run company` (1 to 8 busy loops, one CPU, half a CPU). */
#define CROWDED_NS		30000ULL	/* away for longer than a peer needs for a packet */
#define CROWDED_TIMES		4		/* times as long nobody polls or yields then. Choice */
#define COMPUTES_NS		500000ULL	/* away for longer than anything but computing takes */
#define CROWDED_FIRST_NS	10000000ULL	/* nobody polls for so long then, and twice as long each time that */
#define CROWDED_MAX_NS		160000000ULL	/* it is found again soon after; this at most. Choices */

/* Looks after those who may have died: wait.c, dead.c, keep.c. Shown by: `make storm`, `tests/run kill`, `tests/run fault_`. */
#define ACQUIRE_SLEEP_NS	8000000L	/* a thread that was woken may have died before it took the vCPU */
#define ACQUIRE_TIMEOUT_NS	100000000L	/* then see whether the owner still lives */
#define WAIT_TIMEOUT_NS		800000000L	/* then see whether the keeper still lives */
#define HOLDER_NS		100000000ULL	/* of one owner, before KEEP sees whether it still lives */
#define ADOPT_NS		2000000000ULL	/* for an adopter that gets no CPU. Choice */

/*
 * KEEP: keep.c. Too short takes a CPU from programs, too long delays what nobody else sees. Shown by: `bench/run boot` (CPU time
 * of an idle node), `tests/run fault_watcher_stopped`, `tests/run fault_bystanders`, `bench/run servers`.
 */
#define KEEP_AGAIN_NS		50000ULL	/* somebody else should have seen it by then: a wake-up's time */
#define KEEP_WATCH_NS		1000000ULL	/* one tick: a program that stopped making calls */
#define KEEP_SEEN_NS		4000000ULL	/* a program that made calls so lately only waits for its CPU */
#define KEEP_WORD_NS		8000000ULL	/* twice KEEP_TICKS_NS. Chosen; `apps::fault_keeper_stopped_timers` */
#define AWAY_NS			20000000ULL	/* a watcher may be stopped: doorbells wait for so long then */
#define KEEP_HOT_EACH_NS	300000ULL	/* a node goes idle, or kicks KEEP, so often: then for */
#define KEEP_HOT_NS		4000000ULL	/* so long watchers leave their deadlines to KEEP */
#define KEEP_WARM_NS		50000000ULL	/* after the last thread went idle KEEP is not told of ticks for so long, */
#define KEEP_TICKS_NS		4000000ULL	/* and comes so often. Shown by: `bench/run company pause` */
#define KEEP_LATE_NS		5000ULL		/* so much later than a deadline KEEP may come without being told */
#define TICK_NS			1000000ULL	/* of HZ=1000 */

/* A watcher's timer slack: idle.c. One prctl() takes 0.12 to 0.25 us. Shown by: `bench/run servers` (host calls). */
#define SLACK_MS		50U		/* between two questions, in units of 1.05 ms */

/* ring3-ports: rest.c. Shown by: README's round trips over a TAP, `bench/run company tap`. */
#define PORTS_REST_NS		100000U		/* a packet waits no longer for a program that computes, */
#define PORTS_REST_DOUBLES	3		/* and 8 times as long for one that has only just begun to */

#endif
