// SPDX-License-Identifier: GPL-2.0
/*
 * lock.c - the vCPU's owner word and the words of threads: acquire, release, hand over
 *
 * All of this runs on a host thread's own stack: see internal.h.
 */
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include "internal.h"

struct ring3_cpu ring3_cpus[NR_CPUS] = { [0 ... NR_CPUS - 1] = { .patience = COMES_NS } };

/*
 * What has to be seen to before the vCPU is let go. KEEP must know a deadline that
 * is nearer than the one it sleeps for. A node that goes idle arms its links, so
 * that peers ring from then on. A thread that merely goes home doesn't: while
 * its program runs, links are looked at on the way out of each call and by
 * KEEP's tick, and a busy peer need not make a system call for every packet.
 * Nor does KEEP, when a program has made calls since it came last.
 */
void ring3_settle(struct ring3_vcpu *vcpu, bool idle)
{
	u32 work = READ_ONCE(vcpu->polled);

	if (likely(!work))
		return;
	WRITE_ONCE(vcpu->polled, idle ? 0 : work & R3_EXIT_POLL);
	if (idle && (work & R3_EXIT_POLL)) {
		u32 ready = ring3_poll_arm();

		if (ready)
			host_or(vcpu_pending(vcpu), ready);
	}
	if (work & R3_EXIT_KICK)
		ring3_kick(vcpu);
}

/*
 * The vCPU was let go, and somebody waits for it awake: who takes it within a microsecond, if the next call of the thread that was
 * just here does not come first, in whose CPU the word's cache line is. So that one lets it go first. A waiter that
 * has lost its CPU asks no more, and nobody waits for it again.
 */
void vcpu_give_way(struct ring3_vcpu *vcpu)
{
	int turns = GIVE_WAY_TURNS;

	if (!vcpu_is_asked_for(vcpu))
		return;
	vcpu_ask_no_more(vcpu);
	while (turns-- && !host_load(&vcpu->owner))
		host_pause();
}

/*
 * `watched`: the thread, which lets go of an idle vCPU, sees to the deadline itself. True: a thread that slept for the vCPU
 * was woken.
 */
bool vcpu_release(struct ring3_vcpu *vcpu, bool watched)
{
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	struct ring3_thread *tb = (struct ring3_thread *)READ_ONCE(vcpu->driver);
	struct wakes wakes;
	bool owes = cpu->n_wakes, waits;

	if (watched && host_load(&cpu->away))
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) & ~R3_EXIT_KICK);
	ring3_settle(vcpu, watched);
	/* Who waits has its turn now, or as soon as it is awake. */
	WRITE_ONCE(*vcpu_yield_word(vcpu), 0);
	if (owes)
		vcpu_owe(tb);
	vcpu_take_wakes(cpu, &wakes);
	waits = r3_release(&vcpu->owner);
	if (waits)
		vcpu_wake_owner(vcpu, 1);
	if (owes) {
		vcpu_send_wakes(&wakes);
		vcpu_owe_no_more(tb);
	}
	ring3_ports_call();
	return waits;
}

bool vcpu_try_acquire(struct ring3_thread *tb, u32 waiters)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);

	if (!r3_try_acquire(&vcpu->owner, tb->tid, waiters))
		return false;
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	return true;
}

/* The vCPU was handed to this thread, or is being handed. */
bool vcpu_is_handed(struct ring3_thread *tb)
{
	return r3_owner_is(host_load(&r3t_vcpu(tb)->owner), tb->tid);
}

/*
 * It was offered, and BATON does not come: who hands it over has lost its CPU between two
 * instructions, or its life. It sees by the missing OFFERED that nothing is left to say.
 */
bool vcpu_take_offer(struct ring3_thread *tb)
{
	u32 w = host_load(&tb->word);

	return (w & RING3_WORD_OFFERED) && vcpu_is_handed(tb) && r3_accept_offer(&tb->word, w);
}

/* The owner hands the vCPU to another thread. It may be killed between any two of the three steps. */
void vcpu_hand_over(struct ring3_thread *tb, struct ring3_thread *to)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct wakes wakes;
	u32 w;

	vcpu_owe(tb);
	vcpu_take_wakes(vcpu_cpu(vcpu), &wakes);
	WRITE_ONCE(vcpu->driver, (unsigned long)to);
	r3_word_set(&to->word, RING3_WORD_OFFERED);
	r3_pass_to(&vcpu->owner, to->tid);
	if (r3_hand_over(&to->word, &w))
		vcpu_wake(to, w);
	vcpu_send_wakes(&wakes);
	vcpu_owe_no_more(tb);
}

/* Says in `pending' that a thread waits, for the holder to see as it leaves, and in long kernel work (irq.c). */
void vcpu_ask(struct ring3_vcpu *vcpu, u32 how)
{
	if (!(host_load(vcpu_pending(vcpu)) & how))
		host_or(vcpu_pending(vcpu), how);
}

/*
 * The thread is about to sleep on the owner word with the value `o`, WAITERS in it: from now on who lets go wakes it. The
 * holder may be between its store and its look at `pending', and its store is waited for. False: the word is another.
 */
bool vcpu_announce(struct ring3_vcpu *vcpu, u32 o)
{
	u32 was = o & ~RING3_OWNER_WAITERS;
	int i;

	if (!was || (was & RING3_OWNER_POLLING))
		return false;
	if (host_load(&vcpu->owner) != o && !r3_say_waiting(&vcpu->owner, was))
		return false;
	/* The way out of the fast path may overwrite WAITERS, but it looks here after that. */
	vcpu_ask(vcpu, RING3_IRQ_SLEEPER);
	for (i = 0; i < DRAIN_TURNS; i++) {
		host_pause();
		if (host_load(&vcpu->owner) != o)
			return false;
	}
	return true;
}

/*
 * The thread waited with its own call in other hands, and has the vCPU again. Maybe the call
 * was finished meanwhile, between release and acquire: then it is the driver's to go home,
 * and nothing may be left of DONE, which the next call would take for its own. Nor of an offer
 * by one who died before it could hand over, for who has one is taken to have run nothing.
 */
int vcpu_drive_again(struct ring3_thread *tb)
{
	u32 w = host_load(&tb->word);

	if (w & (RING3_WORD_DONE | RING3_WORD_OFFERED))
		r3_word_clear(&tb->word, RING3_WORD_DONE | RING3_WORD_OFFERED);
	if (w & RING3_WORD_DONE)
		r3t_call(tb) = R3_CALL_DONE;
	return 1;
}

/*
 * The vCPU was let go by a plain store. Somebody sleeps, and the store may have overwritten WAITERS: so once more, with a
 * locked instruction. If another has it by now, that one sees the request as it leaves: only a holder
 * takes it back. Nobody drives meanwhile; it does no harm to die here.
 */
void vcpu_wake_sleeper(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	u32 o;

	while ((host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER) &&
	       r3_freeze(&vcpu->owner, tb->tid, RING3_OWNER_WAITERS, &o)) {
		WRITE_ONCE(vcpu->driver, 0);
		host_andnot(vcpu_pending(vcpu), RING3_IRQ_SLEEPER);
		r3_release(&vcpu->owner);
		vcpu_wake_owner(vcpu, 1);
	}
}
