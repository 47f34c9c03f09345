/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clock.h - what time it is, when the next event is, and how one waits for it (DESIGN rule 5)
 *
 * Theory of operation
 * -------------------
 * The unit is nanoseconds since the node was loaded. Each vCPU has one next event, vcpu->deadline, in that unit;
 * U64_MAX is none. Linux's clock event device writes it (clock.c), on the vCPU itself. Any host thread may read it.
 * When the deadline has passed, any thread may set RING3_IRQ_TIMER in the vCPU's pending word: ring3_timer_irq()
 * checks the time again, so a second or an early bit does no harm.
 *
 * An implementation provides the functions below. host.c follows the host's clock: time passes by itself, and
 * waiting is a futex with a time-out. virtual.c is virtual time: the waiter decides that time passes. No function
 * here needs the vCPU, unless it says so.
 */
#ifndef RING3_CLOCK_H
#define RING3_CLOCK_H

#include "../vcpu/vcpu.h"

/* The current time. Any thread, any stack. */
u64 ring3_clock(void);

/* The time of this vCPU's next event. Any thread, any stack. */
static inline u64 ring3_clock_next(struct ring3_vcpu *vcpu)
{
	return host_load(&vcpu->deadline);
}

static inline bool ring3_clock_due(struct ring3_vcpu *vcpu)
{
	return ring3_clock() >= READ_ONCE(vcpu->deadline);
}

/*
 * Sleeps until one of the words differs from its value in `wv`, or for `ns`. Any process; on a host stack. Returns
 * as futex_waitv() does: the index of the word that woke it, -EAGAIN, -EINTR, -ETIMEDOUT; -ENOSYS or -EPERM if a
 * sandbox refuses that call; -ENOMEM.
 */
long ring3_clock_wait(struct ring3_waitv *wv, unsigned int n, u64 ns);

/*
 * The same until `at` of the node's clock, for KEEP: in the keeper's process, without timer slack, and exact even
 * after the host's clock and the node's have diverged. If futex_waitv() is refused, it sleeps on the first word
 * only.
 */
long ring3_clock_keep(struct ring3_waitv *wv, unsigned int n, u64 now, u64 at);

/*
 * By how many nanoseconds the host may delay the wake-up that ends ring3_clock_wait(), for a thread with default
 * timer slack. The caller asks for a wait that is shorter by this, and stays awake for the rest.
 */
u64 ring3_clock_slack(void);

/* On the vCPU, from the timer interrupt: compare the node's wall clock with what programs read. */
void ring3_clock_sync(void);

/* In a task, before the node is up and later from ring3_clock_sync(). False: no reading was exact enough. */
bool ring3_clock_sync_now(void);

#endif
