// SPDX-License-Identifier: GPL-2.0
/*
 * crowd.c - detect that the host's CPUs are contended, from how long a yield or a poll was interrupted
 */
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "internal.h"

/* The thread was away from `from` to `to`, without having asked for a sleep. True: for long, the CPUs are crowded. */
bool vcpu_crowded_out(struct ring3_cpu *cpu, u64 from, u64 to)
{
	struct ring3_crowd *crowd;
	u64 until, last, ns, away = to - from;

	if (away <= CROWDED_NS)
		return false;
	crowd = vcpu_crowd_here(cpu);
	until = READ_ONCE(crowd->until);
	last = READ_ONCE(crowd->ns);
	if (away < COMPUTES_NS) {
		ns = CROWDED_TIMES * away;
	} else {
		ns = to < until + 2 * last ? min(2 * last, CROWDED_MAX_NS) : CROWDED_FIRST_NS;
		WRITE_ONCE(crowd->ns, ns);
	}
	WRITE_ONCE(crowd->until, max(until, to + ns));
	return true;
}

/*
 * Gives the CPU to whoever wants it, for what we wait for may have to run here. False:
 * somebody took it for long, and to sleep is better than to come back again and again.
 */
bool vcpu_yield_cpu(struct ring3_cpu *cpu, u64 now)
{
	ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	return !vcpu_crowded_out(cpu, now, ring3_clock());
}

/*
 * Threads of the node that share a CPU
 * ------------------------------------
 * A poller that waits for a thread on its own CPU waits in vain: that thread can't run until the poller sleeps. So each thread
 * leaves its name at the CPU that it was seen on (ring3_crowd.last, .before) and takes it back when it goes to sleep. A thread that
 * finds the name of another one neither polls nor spins there. A waker leaves the name of a thread that slept on this CPU, since the
 * host mostly wakes it there. Names are hints: a stale one costs one poll that does not take place.
 */

/* Threads of the keeper have no task. Nobody polls for what they do. */
static bool is_keepers(const struct ring3_thread *tb)
{
	return !tb->task;
}

/* The thread was woken, and waits for this CPU. */
void vcpu_wants_cpu_here(struct ring3_thread *tb)
{
	WRITE_ONCE(vcpu_crowd_here(vcpu_cpu(r3t_vcpu(tb)))->before, tb);
}

/* The thread is awake on this CPU. Not called on the fast path. */
void vcpu_seen_here(struct ring3_thread *tb)
{
	struct ring3_crowd *crowd = vcpu_crowd_here(vcpu_cpu(r3t_vcpu(tb)));

	if (is_keepers(tb))
		return;
	r3t_cpu(tb) = ring3_host_cpu();
	if (READ_ONCE(crowd->last) == tb)
		return;
	WRITE_ONCE(crowd->before, READ_ONCE(crowd->last));
	WRITE_ONCE(crowd->last, tb);
}

/*
 * The thread is about to sleep in the host. The other name goes, too: its thread leaves it again when it runs here next, and one that
 * sleeps in a call of the host's does not.
 */
void vcpu_goes_to_sleep(struct ring3_thread *tb)
{
	struct ring3_crowd *crowd = vcpu_crowd_here(vcpu_cpu(r3t_vcpu(tb)));

	r3t_burst(tb) = BURST_CALLS;
	if (READ_ONCE(crowd->last) != tb && READ_ONCE(crowd->before) != tb)
		return;
	WRITE_ONCE(crowd->last, NULL);
	WRITE_ONCE(crowd->before, NULL);
}

/* Another thread of the node waits for the CPU that this one runs on. */
bool vcpu_other_wants_cpu(struct ring3_thread *tb)
{
	struct ring3_crowd *crowd = vcpu_crowd_here(vcpu_cpu(r3t_vcpu(tb)));
	struct ring3_thread *other = READ_ONCE(crowd->last);

	if (other == tb)
		other = READ_ONCE(crowd->before);
	return other && other != tb && other->tid && vcpu_is_here(other);
}
