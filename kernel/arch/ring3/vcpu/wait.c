// SPDX-License-Identifier: GPL-2.0
/*
 * wait.c - wait for the vCPU, or for what others do with this thread's call
 *
 * All of this runs on a host thread's own stack: see internal.h.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/processor.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "internal.h"

/*
 * A holder lets go within microseconds, mostly, and a sleep and a wake-up take ten times that.
 * Two threads that both sleep for each other's calls would form a convoy. So would two that
 * only make calls, if each took the vCPU as soon as it is free: every call would change the
 * task and move what both use to the other CPU. So a new call leaves the holder alone for a moment, unless that
 * has gone, and it makes some calls meanwhile. From then on the thread asks for its turn: by a note that the owner finds as it goes home.
 * An owner that does not go home for long is asked by an interrupt, and lets go where it changes the task. To ask so at once would cost it an
 * interrupt each time that it enables them, and cut calls of 2 us in two.
 */
static enum acquired acquire_awake(struct ring3_thread *tb, u32 bits, u32 waiters)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u64 start = ring3_clock(), now = start, yielded = start;
	u64 patience = bits || waiters ? 0 : r3t_burst(tb) ? ACQUIRE_NEW_NS : ACQUIRE_BUSY_NS;
	bool asks = !patience, crowded;
	int i, gone = GONE_LOOKS;
	u32 o;

	if (r3t_burst(tb))
		r3t_burst(tb)--;
	for (;;) {
		if ((asks || gone >= GONE_LOOKS) && vcpu_try_acquire(tb, waiters)) {
			/* Others who wait awake ask again. */
			if (vcpu_is_asked_for(vcpu))
				vcpu_ask_no_more(vcpu);
			return TAKEN;
		}
		if (host_load(&tb->word) & bits)
			return NOT_NEEDED;
		o = host_load(&vcpu->owner);
		if (r3_owner_is_free(o)) {
			if (ring3_poisoned())
				return POISONED;
			gone++;
		} else {
			if (now - READ_ONCE(cpu->met_at) > CONTENDED_NS / 4)
				WRITE_ONCE(cpu->met_at, now);
			if (bits && vcpu_is_handed(tb))
				return NOT_NEEDED;
			if (asks && !READ_ONCE(cpu->waits))
				WRITE_ONCE(cpu->waits, 1);
			if (now - start >= ACQUIRE_LONG_NS)
				vcpu_ask(vcpu, RING3_IRQ_WAITER);
			gone = 0;
		}
		for (i = 0; i < ACQUIRE_TURNS; i++)
			host_pause();
		now = ring3_clock();
		asks |= now - start >= patience;
		crowded = vcpu_is_crowded(cpu, now);
		if (now - start >= (crowded ? ACQUIRE_CROWDED_NS : ACQUIRE_SPIN_NS))
			return ring3_poisoned() ? POISONED : TOO_LONG;
		if (!crowded && now - yielded >= ACQUIRE_YIELD_NS) {
			vcpu_yield_cpu(cpu, now);
			yielded = ring3_clock();
		}
	}
}

/*
 * Takes the vCPU, unless the thread's word gets one of `bits` first: its call was finished, or
 * the vCPU handed to it.
 */
enum acquired vcpu_acquire(struct ring3_thread *tb, u32 bits)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	enum acquired got;
	long ret, waited = 0;
	u32 o, waiters = 0, wakes;

	for (;;) {
		got = acquire_awake(tb, bits, waiters);
		if (got == TAKEN && (host_load(&tb->word) & RING3_WORD_OFFERED))
			/* Of one who died before it could hand over. */
			r3_word_clear(&tb->word, RING3_WORD_OFFERED);
		/* If it slept, its wake-up was that of a release, which wakes one: now another has to have it. */
		if (got == NOT_NEEDED && waiters)
			vcpu_wake_owner(vcpu, 1);
		if (got != TOO_LONG)
			return got;
		wakes = host_load(&vcpu->wakes);
		o = host_load(&vcpu->owner) | RING3_OWNER_WAITERS;
		if (!vcpu_announce(vcpu, o))
			continue;
		waiters = RING3_OWNER_WAITERS;
		if (bits && (r3_word_set(&tb->word, RING3_WORD_QUEUED) & bits)) {
			r3_word_clear(&tb->word, RING3_WORD_QUEUED);
			continue;
		}
		vcpu_goes_to_sleep(tb);
		ret = ring3_host_futex_wait(&vcpu->owner, o, ACQUIRE_SLEEP_NS);
		vcpu_seen_here(tb);
		if (bits)
			r3_word_clear(&tb->word, RING3_WORD_QUEUED);
		if (ret != -ETIMEDOUT)
			continue;
		/* Nothing says any more that the thread slept, and nobody was woken since. */
		if (!(host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER) && !r3_owner_waits(host_load(&vcpu->owner)) &&
		    host_load(&vcpu->wakes) == wakes)
			host_add(&ring3_region.late, 1);
		waited += ACQUIRE_SLEEP_NS;
		if (waited < ACQUIRE_TIMEOUT_NS)
			continue;
		waited = 0;
		ring3_take_from_dead(vcpu);
	}
}

/* Without it no timer fires and nobody may join: the node is over. */
static bool keeper_is_gone(void)
{
	return ring3_host_syscall(__NR_kill, ring3_region.keeper_pid, 0, 0, 0, 0, 0) == -ESRCH;
}

/*
 * The thread's call is in other hands. One that polled until now stays awake for a moment even
 * where the vCPU is free: who took it over had something to do, as the other end of what
 * we wait for has just before it answers.
 *
 * A request of the thread's own is served by the task that it resumes as the driver (ring3_service()). Where the owner before died
 * during a hand-off, that task may hand the vCPU over once more at once, and has not served it: then nobody knows of the call, and the
 * thread has to drive again.
 */
static int wait_for_it(struct ring3_thread *tb, enum waits how)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	int spin = vcpu_is_crowded(cpu, ring3_clock()) ? 0 : SPIN_WAIT;
	long ret;
	u32 w;

	for (;;) {
		w = host_load(&tb->word);
		if (w & RING3_WORD_BATON) {
			if (vcpu_is_handed(tb)) {
				r3_word_clear(&tb->word, RING3_WORD_HANDED | RING3_WORD_COME);
				return 1;
			}
			/* Of one who came back late to an offer that was taken; this is another. */
			r3_put_back_stale(&tb->word, w);
			continue;
		}
		if (w & RING3_WORD_DONE) {
			r3_word_clear(&tb->word, RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_OFFERED);
			r3t_request(tb) = 0;
			return 0;
		}
		if (((w & (RING3_WORD_SIGNAL | RING3_WORD_COME)) || r3t_request(tb)) && !vcpu_is_handed(tb)) {
			enum acquired got = vcpu_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);

			if (got == POISONED)
				return vcpu_fail(tb);
			if (got == NOT_NEEDED)
				continue;
			w = r3_word_clear(&tb->word, RING3_WORD_SIGNAL);
			/*
			 * Whoever finished the call did so before we got the vCPU. It may be pending
			 * what came since, for who asks for a look at it has seen that we drive.
			 */
			if (host_load(&tb->word) & RING3_WORD_DONE) {
				r3_word_clear(&tb->word, RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_OFFERED);
				r3t_request(tb) = 0;
				return ring3_host_leave(tb);
			}
			if (w & RING3_WORD_SIGNAL)
				r3t_request(tb) |= R3_REQ_SIGNAL;
			return 1;
		}
		if (ring3_poisoned())
			return vcpu_fail(tb);
		if (spin > 0 && (how == POLLED || host_load(&vcpu->owner)) && !vcpu_other_wants_cpu(tb)) {
			host_pause();
			if (--spin % SPIN_WAIT_YIELD == 0 && !vcpu_yield_cpu(cpu, ring3_clock()))
				spin = 0;
			continue;
		}
		/* Handed over, but for BATON: who does it has lost its CPU or its life, and may wake nobody for it any more. */
		if ((w & RING3_WORD_OFFERED) && vcpu_take_offer(tb))
			return 1;
		if (!r3_say_sleeping(&tb->word, w))
			continue;
		vcpu_goes_to_sleep(tb);
		if (how != WATCHES)
			ret = ring3_host_futex_wait(&tb->word, w | RING3_WORD_SLEEPING, WAIT_TIMEOUT_NS);
		else if (ring3_watch(tb, w | RING3_WORD_SLEEPING, WAIT_TIMEOUT_NS, &ret)) {
			r3_word_clear(&tb->word, RING3_WORD_SLEEPING);
			return vcpu_drive_again(tb);
		}
		r3_word_clear(&tb->word, RING3_WORD_SLEEPING);
		vcpu_seen_here(tb);
		if (vcpu_take_offer(tb))
			return 1;
		if (ret != -ETIMEDOUT)
			continue;
		if (host_load(&tb->word) & (RING3_WORD_DONE | RING3_WORD_BATON))
			host_add(&ring3_region.late, 1);
		if (keeper_is_gone())
			ring3_poison("the node's keeper (process %d) is gone",
				     ring3_region.keeper_pid);
	}
}

int vcpu_wait(struct ring3_thread *tb, enum waits how)
{
	int drives;

	if (how != WATCHES)
		return wait_for_it(tb, how);
	ring3_watch_begin(tb);
	drives = wait_for_it(tb, how);
	ring3_watch_over(tb);
	return drives;
}
