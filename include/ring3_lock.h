/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_lock.h - the steps on a vCPU's owner word and on a thread's word
 *
 * Theory of operation
 * -------------------
 * vcpu->owner says who may run kernel code: 0, or the owner's tid and flags. thread->word says what a waiting thread
 * waits for. Image, gate and keeper write these words by the steps below only; kernel/check refuses any other writer.
 * entry.S has its steps here, too. ring3/abi/steps.rs translates those that are one return statement to Rust, for the
 * keeper, who takes a vCPU from dead owners (ring3/node/src/vcpu.rs).
 *
 * The first part, up to "Steps", is what a step makes of a word: each function is one return statement.
 * tests/build.rs has that part translated too, and the models in tests/src/bin/models take their steps with the result.
 * So a change here is tried in all interleavings by tests/models.
 *
 * Words are shared by processes: all steps are atomic and sequentially consistent, except where "hint" is said.
 */
#ifndef RING3_LOCK_H
#define RING3_LOCK_H

#ifdef __ASSEMBLER__
#include "ring3_asm.h"

/* The steps of entry.S, from and to registers. `owner` is the word. */

/* As r3_freeze(): eax is 0, and the word's new value in tid. ZF: taken; else eax is what the word is. */
.macro R3_TAKE_FREE tid:req, owner:vararg
	lock cmpxchgl \tid, \owner
.endm
/* Releases a vCPU that nobody waits for: eax is the owner's tid, zero a register that is 0. ZF: released. */
.macro R3_RELEASE_UNWAITED zero:req, owner:vararg
	lock cmpxchgl \zero, \owner
.endm
/* The same without a locked instruction. A waiter says in `pending' that it waits, and does not sleep while this is on its way. */
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

/* This thread owns it and polls: nobody has taken it over. */
static inline _Bool r3_owner_polls(r3_u32 o, r3_u32 tid)
{
	return (o & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == (tid | RING3_OWNER_POLLING);
}

/* Somebody sleeps on the word: who releases the vCPU wakes one. */
static inline _Bool r3_owner_waits(r3_u32 o)
{
	return (o & RING3_OWNER_WAITERS) != 0;
}

/* Nothing happened but that somebody began to wait, or was woken, or has to be. */
static inline _Bool r3_owner_same(r3_u32 o, r3_u32 was)
{
	return ((o ^ was) & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == 0;
}

/* Taken, or handed to this thread. Waiters stay known; what was owed has been sent, or is by the thread that hands over. */
static inline r3_u32 r3_owner_taken(r3_u32 o, r3_u32 tid, r3_u32 waiters)
{
	return tid | waiters | (o & RING3_OWNER_WAITERS);
}

static inline r3_u32 r3_owner_driving(r3_u32 o)
{
	return o & (RING3_OWNER_TID | RING3_OWNER_WAITERS);
}

/* The hand-off is complete: BATON in the place of OFFERED. */
static inline r3_u32 r3_word_handed(r3_u32 w)
{
	return (w & ~RING3_WORD_OFFERED) | RING3_WORD_BATON;
}

/* BATON, of one who came late to an offer that was taken; the offer that is there is another. */
static inline r3_u32 r3_word_stale(r3_u32 w)
{
	return (w & ~RING3_WORD_BATON) | RING3_WORD_OFFERED;
}

/* An offer is taken although BATON has not come: who made it was preempted or killed. */
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

/* W: a thread that wants the vCPU. It may take it over from a poller. `waiters`: RING3_OWNER_WAITERS if it has slept for it. */
static inline _Bool r3_try_acquire(r3_a32 *owner, r3_u32 tid, r3_u32 waiters)
{
	r3_u32 o = r3_look(owner);

	return r3_owner_is_free(o) && r3_step(owner, o, r3_owner_taken(o, tid, waiters));
}

/*
 * W: a thread that keeps others out and runs no kernel code (gate/signal/kill.c, vcpu_wake_sleeper()). Not from a poller, who
 * would go on as the owner of an idle vCPU. *o: what was found instead of 0.
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

/* W: the owner, whose current task is the idle task, parked. Returns what the word was. */
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

/* W: the owner, which was told that a thread sleeps on the word. */
static inline void r3_keep_waiters(r3_a32 *owner)
{
	__atomic_fetch_or(owner, RING3_OWNER_WAITERS, __ATOMIC_SEQ_CST);
}

/* W: the owner, which has put off wake-ups. It sends them when it lets go, and does not do so by the fast path. */
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

/* W: whoever finds the owner dead outside kernel code; `o` is what it saw. True: done. */
static inline _Bool r3_reclaim(r3_a32 *owner, r3_u32 o)
{
	return r3_step(owner, o, 0);
}

/* W: anybody. Returns what the word was: SLEEPING and QUEUED say how to wake the thread. */
static inline r3_u32 r3_word_set(r3_a32 *word, r3_u32 bits)
{
	return __atomic_fetch_or(word, bits, __ATOMIC_SEQ_CST);
}

/* W: the thread itself, or the driver that acts for it. Returns what the word was. */
static inline r3_u32 r3_word_clear(r3_a32 *word, r3_u32 bits)
{
	return __atomic_fetch_and(word, ~bits, __ATOMIC_SEQ_CST);
}

/*
 * The hand-off is r3_word_set(OFFERED), r3_pass_to(), r3_hand_over(): who does it may be killed between any two.
 * W: the owner before. False: the thread has taken the offer already. *was: the word before, to wake the thread by.
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
