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
