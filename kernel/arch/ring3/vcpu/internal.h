/* SPDX-License-Identifier: GPL-2.0 */
/*
 * vcpu/ - the right to run kernel code, and what a thread does without it
 *
 * Theory of operation
 * -------------------
 * All of this runs on a host thread's own stack, not on a task's: no kernel
 * function may be called, no kernel lock taken; only the region's shared
 * words and the host's futex are touched. A long copy (outside.c) touches the
 * pages that its task keeps for it, too.
 *
 * vcpu.owner is 0, or the holder's tid. A thread that holds it and has nothing
 * to do marks it POLLING: the current task (the idle task) is parked then, so
 * anybody may take the vCPU over with one compare-and-swap; the poller notices
 * that the word is no longer its own. When the poller gives up it releases the
 * vCPU and sleeps on its own word.
 *
 * A thread inside the image thus is in one of these states:
 *
 *	drives		owner == tid; it is on a task's stack, not here
 *	polls		owner == tid | POLLING; here, in vcpu_poll()
 *	acquires	wants the vCPU; here, in vcpu_acquire(), sleeps on vcpu.owner
 *	copies		has let the vCPU go for a long copy; in vcpu_copy(), acquires it after that
 *	waits		its call is in other hands; here, in vcpu_wait(), sleeps on tb->word;
 *			one that let an idle vCPU go waits for time and peers too (idle.c)
 *
 * Every function that ends a state returns 1 (this thread holds the vCPU and resumes
 * the current task) or 0 (its call is over, the result is in tb->ret).
 *
 * The vCPU is handed over in three steps, since the thread that does it may be killed between any
 * two: OFFERED in the word of who is to have it, the owner's tid, then BATON in the
 * place of OFFERED. A thread that wakes up as the owner, and OFFERED, takes it as it is.
 *
 * tests/src/bin/models has all this as a model, which is tried in all interleavings: a change
 * here is a change there.
 *
 * WAITERS in the owner word is a promise: who releases the vCPU wakes a thread that sleeps there. The fast path may overwrite
 * WAITERS, so a thread that is about to sleep also sets RING3_IRQ_SLEEPER. OWES says that the owner itself has wake-ups to
 * send after its release.
 *
 * Whoever releases the vCPU looks at region->pending once more after that: the
 * one who set a bit either saw the vCPU free, and drove, or left it to us.
 */
#ifndef RING3_VCPU_INTERNAL_H
#define RING3_VCPU_INTERNAL_H

#include <linux/errno.h>
#include <linux/processor.h>
#include <asm/ring3_poll.h>
#include <asm/unistd.h>
#include "tuning.h"
#include "vcpu.h"

/* The call fails: the node is poisoned. */
static inline int vcpu_fail(struct ring3_thread *tb)
{
	tb->ret = -EIO;
	r3t_call(tb) = R3_CALL_NONE;
	return 0;
}

/*
 * Others want the CPU that this thread runs on: a poller keeps the thread that it waits for from running, and
 * pays for it. The host's scheduler takes what was polled or given away by a yield for used, and lets threads that
 * compute go first for milliseconds. So for a while the node's threads on this CPU sleep at once instead, and are woken.
 */
static inline struct ring3_crowd *vcpu_crowd_here(struct ring3_cpu *cpu)
{
	return &cpu->crowd[ring3_host_cpu() % CROWDS];
}

static inline bool vcpu_is_crowded(struct ring3_cpu *cpu, u64 now)
{
	return now < READ_ONCE(vcpu_crowd_here(cpu)->until);
}

/* The other thread was last seen on the CPU that this code runs on: it can't run now. */
static inline bool vcpu_is_here(struct ring3_thread *other)
{
	return other && r3t_cpu(other) == ring3_host_cpu();
}

/* The wake-ups that were put off, taken by the holder to be carried out without the vCPU. */
struct wakes {
	unsigned int n;
	struct ring3_wake at[WAKES_MAX];
};

/* What came of waiting for the vCPU awake, or asleep. */
enum acquired {
	NOT_NEEDED = -1,	/* the thread's word got one of the bits */
	POISONED = 0,
	TAKEN = 1,
	TOO_LONG = 2,
};

/* How a thread comes to wait for what others do with its call. */
enum waits {
	CALLED,		/* they had it already */
	POLLED,		/* until now it polled */
	WATCHES,	/* it let an idle vCPU go: idle.c */
};

/* The interrupts that wait to be served. That threads wait is the owner's business, as it leaves. */
static inline u32 vcpu_work(struct ring3_vcpu *vcpu)
{
	return host_load(vcpu_pending(vcpu)) & ~(RING3_IRQ_SLEEPER | RING3_IRQ_WAITER);
}

/* A thread waits for the vCPU, awake. */
static inline bool vcpu_is_asked_for(struct ring3_vcpu *vcpu)
{
	return READ_ONCE(vcpu_cpu(vcpu)->waits) || (host_load(vcpu_pending(vcpu)) & RING3_IRQ_WAITER);
}

static inline void vcpu_ask_no_more(struct ring3_vcpu *vcpu)
{
	WRITE_ONCE(vcpu_cpu(vcpu)->waits, 0);
	if (host_load(vcpu_pending(vcpu)) & RING3_IRQ_WAITER)
		host_andnot(vcpu_pending(vcpu), RING3_IRQ_WAITER);
}

/* lock.c */
void ring3_settle(struct ring3_vcpu *vcpu, bool idle);
void vcpu_give_way(struct ring3_vcpu *vcpu);
bool vcpu_release(struct ring3_vcpu *vcpu, bool watched);
bool vcpu_try_acquire(struct ring3_thread *tb, u32 waiters);
bool vcpu_is_handed(struct ring3_thread *tb);
bool vcpu_take_offer(struct ring3_thread *tb);
void vcpu_hand_over(struct ring3_thread *tb, struct ring3_thread *to);
void vcpu_ask(struct ring3_vcpu *vcpu, u32 how);
int vcpu_drive_again(struct ring3_thread *tb);
void vcpu_wake_sleeper(struct ring3_thread *tb);

/* wake.c */
void vcpu_owe(struct ring3_thread *tb);
void vcpu_owe_no_more(struct ring3_thread *tb);
void vcpu_send_for_dead(const struct ring3_proc *proc);
void vcpu_wake_owner(struct ring3_vcpu *vcpu, int count);
void vcpu_wake(struct ring3_thread *tb, u32 w);
void vcpu_take_wakes(struct ring3_cpu *cpu, struct wakes *wakes);
void vcpu_send_wakes(const struct wakes *wakes);

/* crowd.c */
void vcpu_seen_here(struct ring3_thread *tb);
void vcpu_wants_cpu_here(struct ring3_thread *tb);
void vcpu_goes_to_sleep(struct ring3_thread *tb);
bool vcpu_other_wants_cpu(struct ring3_thread *tb);
bool vcpu_crowded_out(struct ring3_cpu *cpu, u64 from, u64 to);
bool vcpu_yield_cpu(struct ring3_cpu *cpu, u64 now);

/* wait.c */
enum acquired vcpu_acquire(struct ring3_thread *tb, u32 bits);
int vcpu_wait(struct ring3_thread *tb, enum waits how);

/* outside.c */
bool vcpu_has_copy(struct ring3_thread *tb);
void vcpu_copy(struct ring3_thread *tb);

/* poll.c */
int vcpu_poll(struct ring3_thread *tb);

#endif
