/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_lock.h - the steps on a vCPU's owner word and on a thread's word
 *
 * Theory of operation
 * -------------------
 * vcpu->owner says which thread may run kernel code: 0, or the owner's tid and flags. thread->word says what a waiting
 * thread waits for. Image, gate and keeper write these words only by the steps below; kernel/check refuses any other
 * writer. entry.S has its steps here, too. ring3/abi/steps.rs translates those that are one return statement to Rust,
 * for the keeper, which takes a vCPU from dead owners (ring3/node/src/vcpu.rs).
 *
 * The functions of the first part, up to "Steps", compute the new value of a word; each is one return statement.
 * tests/build.rs translates that part too, and the models in tests/src/bin/models use the result for their steps. So
 * tests/models checks a change here in all interleavings.
 *
 * Words are shared by processes: all steps are atomic and sequentially consistent, except where "hint" is said.
 */
#ifndef RING3_LOCK_H
#define RING3_LOCK_H

#ifdef __ASSEMBLER__
#include "ring3_asm.h"

/* The steps of entry.S, from and to registers. `owner` is the word. */

/* As r3_freeze(): eax is 0, tid has the word's new value. ZF: taken; otherwise eax is the present value. */
.macro R3_TAKE_FREE tid:req, owner:vararg
	lock cmpxchgl \tid, \owner
.endm
/* Releases a vCPU without waiters: eax is the owner's tid, zero a register that is 0. ZF: released. */
.macro R3_RELEASE_UNWAITED zero:req, owner:vararg
	lock cmpxchgl \zero, \owner
.endm
/* The same without a locked instruction. A waiter sets its bit in `pending', and does not sleep while this store is under way. */
.macro R3_RELEASE_STORE owner:vararg
	movl	$0, \owner
.endm
/* At boot there is one thread. */
.macro R3_BOOT_OWNER tid:req, owner:vararg
	movl	\tid, \owner
.endm

#else
#include "ring3.h"

/* The vCPU can be taken: it is free, or its owner only polls. */
static inline _Bool r3_owner_is_free(r3_u32 o)
{
	return (o == 0) || ((o & RING3_OWNER_POLLING) != 0);
}

/* This thread owns it, and does not poll. */
static inline _Bool r3_owner_is(r3_u32 o, r3_u32 tid)
{
	return (o & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == tid;
}

/* This thread owns it and polls: no thread has taken it over. */
static inline _Bool r3_owner_polls(r3_u32 o, r3_u32 tid)
{
	return (o & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == (tid | RING3_OWNER_POLLING);
}

/* A thread sleeps on the word: the release wakes one. */
static inline _Bool r3_owner_waits(r3_u32 o)
{
	return (o & RING3_OWNER_WAITERS) != 0;
}

/* The same owner; at most, threads have begun to wait, were woken, or have to be woken. */
static inline _Bool r3_owner_same(r3_u32 o, r3_u32 was)
{
	return ((o ^ was) & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == 0;
}

/* Taken, or handed to this thread. WAITERS is kept; owed wake-ups were sent, or the thread that hands over sends them. */
static inline r3_u32 r3_owner_taken(r3_u32 o, r3_u32 tid, r3_u32 waiters)
{
	return tid | waiters | (o & RING3_OWNER_WAITERS);
}

static inline r3_u32 r3_owner_driving(r3_u32 o)
{
	return o & (RING3_OWNER_TID | RING3_OWNER_WAITERS);
}

/* The hand-off is complete: BATON replaces OFFERED. */
static inline r3_u32 r3_word_handed(r3_u32 w)
{
	return (w & ~RING3_WORD_OFFERED) | RING3_WORD_BATON;
}

/* A stale BATON: its sender was late, and its offer had been taken already. The offer in the word is another one. */
static inline r3_u32 r3_word_stale(r3_u32 w)
{
	return (w & ~RING3_WORD_BATON) | RING3_WORD_OFFERED;
}

/* An offer is accepted before BATON has come: the thread that made it was preempted or killed. */
static inline r3_u32 r3_word_accepted(r3_u32 w)
{
	return w & ~(RING3_WORD_OFFERED | RING3_WORD_COME);
}

/* Steps */

static inline _Bool r3_step(r3_a32 *word, r3_u32 old, r3_u32 new_)
{
	return __atomic_compare_exchange_n(word, &old, new_, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static inline r3_u32 r3_look(r3_a32 *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* W: a thread that wants the vCPU. It may take it over from a poller. `waiters`: RING3_OWNER_WAITERS if it has slept on the word. */
static inline _Bool r3_try_acquire(r3_a32 *owner, r3_u32 tid, r3_u32 waiters)
{
	r3_u32 o = r3_look(owner);

	return r3_owner_is_free(o) && r3_step(owner, o, r3_owner_taken(o, tid, waiters));
}

/*
 * W: a thread that keeps others out and runs no kernel code (gate/signal/kill.c, vcpu_wake_sleeper()). Not from a
 * poller, which would continue as the owner of an idle vCPU. *o: the value that was found instead of 0.
 */
static inline _Bool r3_freeze(r3_a32 *owner, r3_u32 tid, r3_u32 waiters, r3_u32 *o)
{
	*o = 0;
	return __atomic_compare_exchange_n(owner, o, tid | waiters, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* W: the owner. True: a thread sleeps on the word, and has to be woken. */
static inline _Bool r3_release(r3_a32 *owner)
{
	return r3_owner_waits(__atomic_exchange_n(owner, 0, __ATOMIC_SEQ_CST));
}

/* W: the owner, whose current task is the idle task, parked. Returns the old value. */
static inline r3_u32 r3_start_polling(r3_a32 *owner)
{
	return __atomic_fetch_or(owner, RING3_OWNER_POLLING, __ATOMIC_SEQ_CST);
}

/* W: the poller. False: another thread has taken the vCPU over. */
static inline _Bool r3_stop_polling(r3_a32 *owner, r3_u32 tid)
{
	r3_u32 o;

	do {
		o = r3_look(owner);
		if (!r3_owner_polls(o, tid))
			return 0;
	} while (!r3_step(owner, o, r3_owner_driving(o)));
	return 1;
}

/* W: a thread that is about to sleep on the word, which it has seen as `o` without WAITERS. */
static inline _Bool r3_say_waiting(r3_a32 *owner, r3_u32 o)
{
	return r3_step(owner, o, o | RING3_OWNER_WAITERS);
}

/* W: the owner, after it has learned that a thread sleeps on the word. */
static inline void r3_keep_waiters(r3_a32 *owner)
{
	__atomic_fetch_or(owner, RING3_OWNER_WAITERS, __ATOMIC_SEQ_CST);
}

/* W: the owner, which has deferred wake-ups. It sends them when it releases the vCPU, which it must not do by the fast path. */
static inline void r3_owe(r3_a32 *owner)
{
	__atomic_fetch_or(owner, RING3_OWNER_OWES, __ATOMIC_SEQ_CST);
}

/* W: the owner for another thread, in a hand-off; the adopter for itself, when the owner is dead. */
static inline void r3_pass_to(r3_a32 *owner, r3_u32 tid)
{
	r3_u32 o;

	do {
		o = r3_look(owner);
	} while (!r3_step(owner, o, r3_owner_taken(o, tid, 0)));
}

/* W: a thread that has found the owner dead outside of kernel code; `o` is the value that it saw. True: freed. */
static inline _Bool r3_reclaim(r3_a32 *owner, r3_u32 o)
{
	return r3_step(owner, o, 0);
}

/* W: any thread. Returns the old value: SLEEPING and QUEUED say how to wake the thread. */
static inline r3_u32 r3_word_set(r3_a32 *word, r3_u32 bits)
{
	return __atomic_fetch_or(word, bits, __ATOMIC_SEQ_CST);
}

/* W: the thread itself, or the driver that acts for it. Returns the old value. */
static inline r3_u32 r3_word_clear(r3_a32 *word, r3_u32 bits)
{
	return __atomic_fetch_and(word, ~bits, __ATOMIC_SEQ_CST);
}

/*
 * The hand-off is r3_word_set(OFFERED), r3_pass_to(), r3_hand_over(); its sender may be killed between any two.
 * W: the previous owner. False: the thread has accepted the offer already. *was: the old value, for waking the thread.
 */
static inline _Bool r3_hand_over(r3_a32 *word, r3_u32 *was)
{
	do {
		*was = r3_look(word);
		if (!(*was & RING3_WORD_OFFERED))
			return 0;
	} while (!r3_step(word, *was, r3_word_handed(*was)));
	return 1;
}

/* W: the thread itself. False: the word has changed since it was `w`. */
static inline _Bool r3_accept_offer(r3_a32 *word, r3_u32 w)
{
	return r3_step(word, w, r3_word_accepted(w));
}

static inline _Bool r3_put_back_stale(r3_a32 *word, r3_u32 w)
{
	return r3_step(word, w, r3_word_stale(w));
}

static inline _Bool r3_say_sleeping(r3_a32 *word, r3_u32 w)
{
	return r3_step(word, w, w | RING3_WORD_SLEEPING);
}

#endif /* __ASSEMBLER__ */
#endif
