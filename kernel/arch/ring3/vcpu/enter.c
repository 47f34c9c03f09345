// SPDX-License-Identifier: GPL-2.0
/*
 * enter.c - where entry.S comes to with what is not its fast path: enter, park, leave
 *
 * All of this runs on a host thread's own stack: see internal.h.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "internal.h"

/* The links are the business of vCPU 0's. */
static bool is_keep(struct ring3_thread *tb)
{
	return tb == &ring3_region.driver_thread[0];
}

/* The thread's call is over: let go and go home, unless something is left to do. */
int ring3_host_leave(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	/* The fast path comes here with the vCPU released or not. */
	u32 o = host_load(&vcpu->owner);

	if ((o & RING3_OWNER_TID) == tb->tid && vcpu->driver == (unsigned long)tb)
		vcpu_release(vcpu, false);
	if (host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER)
		vcpu_wake_sleeper(tb);
	vcpu_give_way(vcpu);
	if (host_load(vcpu_pending(vcpu)) && !ring3_poisoned() && vcpu_try_acquire(tb, 0)) {
		r3t_call(tb) = R3_CALL_DONE;
		return 1;
	}
	r3t_call(tb) = R3_CALL_NONE;
	vcpu_seen_here(tb);
	return 0;
}

/* The thread had let go with its own call under way: it drives again, unless others do so for it. */
static int come_back(struct ring3_thread *tb)
{
	enum acquired got = vcpu_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);

	if (got == NOT_NEEDED)
		return vcpu_wait(tb, CALLED);
	return got == TAKEN ? vcpu_drive_again(tb) : vcpu_fail(tb);
}

/*
 * This thread is about to copy, and may be stopped or killed in that: where nobody has the vCPU, KEEP comes for what has
 * been asked of it, or is runnable.
 */
static void leave_work(struct ring3_vcpu *vcpu, bool runnable)
{
	if ((!runnable && !host_load(vcpu_pending(vcpu))) || !r3_owner_is_free(host_load(&vcpu->owner)))
		return;
	host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
	ring3_kick(vcpu);
}

int ring3_host_park(struct ring3_thread *tb, unsigned long mode, struct ring3_thread *to)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	bool waits, home;

	if (unlikely(vcpu_has_copy(tb))) {
		if (mode == R3_PARK_HANDOVER)
			vcpu_hand_over(tb, to);
		else
			vcpu_release(vcpu, false);
		leave_work(vcpu, mode == R3_PARK_YIELD);
		vcpu_copy(tb);
		return come_back(tb);
	}
	switch (mode) {
	case R3_PARK_OUTSIDE:
		return ring3_host_leave(tb);

	case R3_PARK_POLL:
		if (r3t_call(tb) == R3_CALL_DONE)
			return ring3_host_leave(tb);
		return vcpu_poll(tb);

	case R3_PARK_SLEEP:
		if (r3t_call(tb) == R3_CALL_DONE) {
			ring3_settle(vcpu, !is_keep(tb) || !vcpu_cpu(vcpu)->keep_watches);
			return ring3_host_leave(tb);
		}
		vcpu_release(vcpu, true);
		if (host_load(vcpu_pending(vcpu)) && vcpu_try_acquire(tb, 0)) {
			ring3_tell_keep(vcpu);
			return vcpu_drive_again(tb);
		}
		return vcpu_wait(tb, WATCHES);

	case R3_PARK_HANDOVER:
		vcpu_hand_over(tb, to);
		if (r3t_call(tb) == R3_CALL_DONE) {
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		return vcpu_wait(tb, CALLED);

	case R3_PARK_YIELD:
		home = vcpu_cpu(vcpu)->home_wanted;
		vcpu_cpu(vcpu)->home_wanted = false;
		waits = vcpu_release(vcpu, false);
		vcpu_give_way(vcpu);
		if (r3t_call(tb) == R3_CALL_DONE) {
			/* Who waited does not any more: to go on takes less than to wake KEEP for what is runnable. */
			if (!home && !waits && !host_load(&vcpu->owner) && vcpu_try_acquire(tb, 0))
				return 1;
			/*
			 * Home; what is still runnable is run by the thread that has the vCPU next. KEEP comes with the next tick, in case
			 * that one was killed or has no CPU; at once where nobody else comes.
			 */
			host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
			if (!waits && r3_owner_is_free(host_load(&vcpu->owner)))
				ring3_kick(vcpu);
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		return come_back(tb);

	case R3_PARK_COPY:
		/* The thread that had begun the copy has died. REAP ends that. */
		return 1;
	}
	return 0;
}

/*
 * A process died, maybe while it polled: then it has not seen what other vCPUs asked of its own, nor does
 * anybody until that one's next deadline, which an idle one may not have. Or while it watched.
 */
static void look_after_dead(void)
{
	struct ring3_vcpu *vcpu;

	for_each_vcpu(vcpu) {
		host_store(&vcpu_cpu(vcpu)->watcher_lost, 1);
		if (IS_ENABLED(CONFIG_SMP)) {
			ring3_take_from_dead(vcpu);
			host_or(vcpu_pending(vcpu), RING3_IRQ_WORK);
		}
		ring3_kick(vcpu);
	}
}

/* A call that is not on the fast path. `owned`: the vCPU is taken already. */
int ring3_host_enter(struct ring3_thread *tb, int owned)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	long nr = tb->nr;

	if (nr == RING3_NR_KEEP) {
		tb->ret = ring3_host_keep(tb);
		return 0;
	}
	if (nr == RING3_NR_ADOPT) {
		tb->ret = ring3_host_adopt(tb);
		return 0;
	}
	if (nr == RING3_NR_DRIVE) {
		int turns = SPIN_DRIVE;

		tb->ret = 0;
		if (tb == &ring3_region.driver_thread[1]) {
			ring3_host_rest();
			if (!host_load(&ring3_region.pending) && !host_load(vcpu_pending(vcpu)))
				return 0;
		}
		if (vcpu == &ring3_region.vcpu[0])
			ring3_take_inbox();
		/* Whoever holds it sees what is pending, unless it is on its way out: entry.S. */
		while (!ring3_poisoned()) {
			if (vcpu_try_acquire(tb, 0)) {
				r3t_call(tb) = R3_CALL_DONE;
				return 1;
			}
			if (!turns-- || !host_load(vcpu_pending(vcpu)))
				break;
			host_pause();
		}
		return 0;
	}
	if (nr == RING3_NR_REAP) {
		host_store(&((struct ring3_proc *)tb->args[0])->state, RING3_PROC_DEAD);
		vcpu_send_for_dead((struct ring3_proc *)tb->args[0]);
		look_after_dead();
	}
	if (!tb->task) {
		tb->ret = -EINVAL;
		return owned ? ring3_host_leave(tb) : 0;
	}
	/* Who died has one vCPU; the others would go on. */
	if (IS_ENABLED(CONFIG_SMP) && !owned && host_load(&ring3_region.state) == RING3_POISONED)
		return vcpu_fail(tb);
	vcpu_seen_here(tb);
	if (!owned && vcpu_acquire(tb, 0) != TAKEN)
		return vcpu_fail(tb);
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	r3t_call(tb) = R3_CALL_WANT;
	r3t_request(tb) |= R3_REQ_CALL;
	return 1;
}
