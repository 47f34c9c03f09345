// SPDX-License-Identifier: GPL-2.0
/*
 * jitter.c - real time that passes where it must not matter
 *
 * A run in virtual time is a function of its scenario and seed. With ring3_sim_jitter=US (trace.c) it is tested for that: threads
 * sleep for random real time at each change of the turn, as they come from outside, and as they leave. The gate
 * does so before each call (gate/sim/sim.c). So a run sees more orders of what the host does than a busy machine
 * shows in many runs. Two runs, with jitter and without, have to be equal.
 *
 * One point in OFTEN sleeps for up to US microseconds, one in SELDOM for up to LONG times as much: the first shifts threads
 * against each other by some calls, the second by the start or end of a process.
 */
#include <linux/kernel.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <uapi/linux/time.h>
#include "../clock/clock.h"
#include "../vcpu/vcpu.h"
#include "turn.h"

#define OFTEN	8
#define SELDOM	256
#define LONG	20

/* On a host thread's own stack. What is drawn depends on the host's clock, and on nothing of the node's. */
void turn_jitter(void)
{
	u64 us = ring3_region.jitter_us, drawn;

	if (likely(!us))
		return;
	drawn = ring3_host_clock(CLOCK_MONOTONIC) * 0x9e3779b97f4a7c15ull >> 24;
	if (!(drawn % SELDOM))
		us *= LONG;
	else if (drawn % OFTEN)
		return;
	ring3_host_nap((drawn >> 8) % us * NSEC_PER_USEC);
}
