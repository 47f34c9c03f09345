// SPDX-License-Identifier: GPL-2.0
/*
 * order.c - what a call costs, and another order of wake-ups for each seed
 *
 * Theory of operation
 * -------------------
 * What a call costs decides which of two threads goes on first. With ring3_sim_order=SEED,NS one call in EVERY costs up
 * to NS more, as if another program had taken the processor. Which one, and how much more, is a function of the seed, the
 * virtual time and the thread alone. It neither depends on how many calls were made before nor takes from the kernel's
 * randomness.
 *
 * entry.S charges a call without a look at this where nothing else is to be done, and when that is so depends on the host.
 * So with an order each call has to come here: for entry.S it then costs FOREVER, which leads past the next deadline.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/math64.h>
#include <linux/string.h>
#include <asm/unistd.h>
#include "../clock/clock.h"
#include "turn.h"

#define EVERY	4	/* calls: enough to part two threads within some calls, few enough to leave most of a run alone */
#define FOREVER	(U64_MAX / 4)

static u64 seed, most_ns;
static u64 call_ns, read_ns;
static bool every;	/* each call comes here */

/* The last step of SplitMix64 (Steele, Lea, Flood 2014). */
static u64 mix(u64 z)
{
	z += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* What the call `nr' of the thread `pid' costs that ends now, in ns. */
u64 turn_cost(unsigned long nr, int pid)
{
	bool read = nr == __NR_clock_gettime || nr == __NR_gettimeofday || nr == __NR_time;
	u64 drawn, extra;

	if (likely(!every))
		return read ? ring3_virtual_read_cost : ring3_virtual_cost;
	if (read)
		return read_ns;
	if (!most_ns)
		return call_ns;
	drawn = mix(mix(seed ^ ring3_clock()) ^ pid);
	if (drawn % EVERY)
		return call_ns;
	div64_u64_rem(mix(drawn), most_ns, &extra);
	return call_ns + extra;
}

/* After ring3_sim_cost= was read, and before the first program. */
static int __init begin_order(void)
{
	if (!most_ns && !turn_traces)
		return 0;
	every = true;
	call_ns = ring3_virtual_cost;
	read_ns = ring3_virtual_read_cost;
	ring3_virtual_cost = FOREVER;
	ring3_virtual_read_cost = FOREVER;
	return 0;
}
early_initcall(begin_order);

/* ring3_sim_order=SEED,NS */
static int __init set_order(char *words)
{
	char *most = strchr(words, ',');

	if (!most)
		return 0;
	*most++ = 0;
	return !kstrtou64(words, 0, &seed) && !kstrtou64(most, 0, &most_ns);
}
__setup("ring3_sim_order=", set_order);
