// SPDX-License-Identifier: GPL-2.0
/*
 * rest.c - keep the keeper's thread ring3-ports off the host's descriptors while others look at them
 *
 * All of this runs on a host thread's own stack: see internal.h.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <asm/ring3.h>
#include "internal.h"

static u32 ports_rest_ns = PORTS_REST_NS;	/* ring3_ports_rest_ns= of the command line; 0: never */
static u32 ports_rest;			/* futex word; 1: ring3-ports rests */
static u32 ports_rests;			/* in a row that nobody cut short */

/* Somebody polls, or a program makes calls, whose way out looks at the ports. */
static bool others_look(void)
{
	struct ring3_vcpu *vcpu;

	for_each_vcpu(vcpu)
		if ((host_load(&vcpu->owner) & RING3_OWNER_POLLING) ||
		    (host_load(&vcpu->polled) & R3_EXIT_POLL))
			return true;
	return false;
}

/*
 * The keeper's ring3-ports was woken by a descriptor. While it waits on the host, each frame
 * wakes it, at the cost of the host's sender and of a processor that the node's program
 * or its peer could use, for what a poller sees sooner by itself. So it stays away from the host
 * while others look, but not for long: a program may go away and compute. Who goes idle
 * calls it back: either it sees the idle node here, or ring3_ports_call() sees that it rests.
 */
void ring3_host_rest(void)
{
	if (!ports_rest_ns || !others_look()) {
		ports_rests = 0;
		return;
	}
	host_store(&ports_rest, 1);
	host_fence();
	/* Each end of a rest is a thread that the host runs in the place of whom the poller waits for. */
	if (!others_look())
		ports_rests = 0;
	else if (ring3_host_futex_wait(&ports_rest, 1, (u64)ports_rest_ns << ports_rests) != -ETIMEDOUT)
		ports_rests = 0;
	else if (ports_rests < PORTS_REST_DOUBLES && others_look())
		ports_rests++;
	host_store(&ports_rest, 0);
}

/* The vCPU was let go: nobody may be looking at the host's descriptors any more. */
void ring3_ports_call(void)
{
	if (host_load(&ports_rest) && !others_look() && host_xchg(&ports_rest, 0))
		ring3_host_futex_wake(&ports_rest, 1);
}

static int __init set_ports_rest(char *ns)
{
	return !kstrtou32(ns, 0, &ports_rest_ns);
}
__setup("ring3_ports_rest_ns=", set_ports_rest);
