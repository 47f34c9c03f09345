// SPDX-License-Identifier: GPL-2.0
/*
 * park.c - where entry.S comes to: enter, park, leave; waits for the turn
 *
 * All of this runs on a host thread's own stack: see turn.h.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <uapi/linux/poll.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <asm/unistd.h>
#include "../vcpu/internal.h"
#include "turn.h"

struct ring3_cpu ring3_cpus[NR_CPUS];
u32 turn_hands;
u32 turn_comers;
s32 turn_leaving;
struct ring3_thread *turn_leaving_thread;
u32 *turn_leaving_word;

static bool acquire(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);

	if (!r3_try_acquire(&vcpu->owner, tb->tid, 0))
		return false;
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	return true;
}

static bool is_handed(struct ring3_thread *tb)
{
	return r3_owner_is(host_load(&r3t_vcpu(tb)->owner), tb->tid);
}

void ring3_settle(struct ring3_vcpu *vcpu, bool idle)
{
	WRITE_ONCE(vcpu->polled, 0);
}

void ring3_wake_now(struct ring3_vcpu *vcpu)
{
}

/* Nobody sleeps there: whose turn it is sleeps on its own word. */
void vcpu_wake_owner(struct ring3_vcpu *vcpu, int count)
{
}

/* Nobody but the keeper gets a result without the vCPU. */
void ring3_thread_notify(struct ring3_thread *tb, u32 bits)
{
	if (r3_word_set(&tb->word, bits) & RING3_WORD_SLEEPING)
		ring3_host_futex_wake(&tb->word, 1);
}

/* A task that needs its thread hands the vCPU over: ring3_user_reach(). */
bool ring3_thread_call(struct ring3_thread *tb)
{
	return false;
}

static void hand_over(struct ring3_thread *to)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(to);
	u32 w;

	turn_hands++;
	WRITE_ONCE(vcpu->driver, (unsigned long)to);
	r3_word_set(&to->word, RING3_WORD_OFFERED);
	r3_pass_to(&vcpu->owner, to->tid);
	if (r3_hand_over(&to->word, &w) && (w & RING3_WORD_SLEEPING))
		ring3_host_futex_wake(&to->word, 1);
}

#define LOOK_NS		(1 * NSEC_PER_MSEC)	/* for who is killed on the way, and clears nothing */

/* A thread has ended here. The host clears its word when it uses no memory any more, and forgets its number a little later. */
static void wait_for_thread(void)
{
	struct ring3_thread *tb = turn_leaving_thread;
	u32 *word = turn_leaving_word, val;
	s32 pid, tid;

	if (likely(!tb))
		return;
	turn_leaving_thread = NULL;
	pid = ((struct ring3_proc *)tb->proc)->pid;
	tid = tb->tid;
	while ((val = host_load(word)) != 0 && ring3_host_thread_exists(pid, tid))
		ring3_host_futex_wait(word, val, LOOK_NS);
	/* The first thread keeps its number until the process ends. */
	while (pid != tid && ring3_host_thread_exists(pid, tid))
		ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* A process has ended here. What it holds in the host (locks, its place as a child) is gone before anybody goes on. */
static void wait_for_leaving(void)
{
	s32 pid = turn_leaving;
	struct pollfd p = { .events = POLLIN };

	wait_for_thread();
	if (likely(!pid))
		return;
	turn_leaving = 0;
	p.fd = ring3_host_syscall(__NR_pidfd_open, pid, 0, 0, 0, 0, 0);
	if (p.fd < 0)
		return;
	while (ring3_host_syscall(__NR_poll, (long)&p, 1, -1, 0, 0, 0) == -EINTR)
		;
	ring3_host_syscall(__NR_close, p.fd, 0, 0, 0, 0, 0);
}

/*
 * A thread has come from outside: its request is seen by who has the vCPU, or by itself. True: it has it. The keeper comes when
 * the host lets it, so it is served where nobody sees when: while all wait.
 */
static bool come(struct ring3_thread *tb, unsigned long request)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);

	r3t_request(tb) |= request;
	if (tb->proc == (unsigned long)&ring3_region.init_proc)
		host_xchg(&turn_comers, 1);
	else
		host_or(vcpu_pending(vcpu), RING3_IRQ_COMER);
	return acquire(tb);
}

/* The vCPU is free, or about to be: is there something to do with it? */
static bool is_called(struct ring3_vcpu *vcpu)
{
	if (host_load(&turn_comers) && host_xchg(&turn_comers, 0))
		host_or(vcpu_pending(vcpu), RING3_IRQ_COMER);
	return host_load(vcpu_pending(vcpu));
}

static bool keeper_is_gone(void)
{
	return ring3_host_syscall(__NR_kill, ring3_region.keeper_pid, 0, 0, 0, 0, 0) == -ESRCH;
}

/* 1: the thread has the vCPU and resumes the current task; 0: its call is over. */
static int wait_turn(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	long ret;
	u32 w;

	for (;;) {
		w = host_load(&tb->word);
		if (w & RING3_WORD_HANDED) {
			if (is_handed(tb)) {
				r3_word_clear(&tb->word, RING3_WORD_HANDED | RING3_WORD_COME);
				if (r3t_call(tb) != R3_CALL_DONE)
					wait_for_leaving();
				turn_jitter();
				return 1;
			}
		} else if (w & RING3_WORD_DONE) {
			r3_word_clear(&tb->word, RING3_WORD_DONE);
			return 0;
		}
		if (w & RING3_WORD_SIGNAL) {
			/* From outside the node. */
			r3_word_clear(&tb->word, RING3_WORD_SIGNAL);
			if (come(tb, R3_REQ_SIGNAL))
				return 1;
			continue;
		}
		if (ring3_poisoned())
			return vcpu_fail(tb);
		/* What is pending was said after the last holder looked. */
		if (!host_load(&vcpu->owner) && is_called(vcpu) && acquire(tb))
			return 1;
		if (!r3_say_sleeping(&tb->word, w))
			continue;
		ret = ring3_host_futex_wait(&tb->word, w | RING3_WORD_SLEEPING, WAIT_TIMEOUT_NS);
		r3_word_clear(&tb->word, RING3_WORD_SLEEPING);
		if (ret == -ETIMEDOUT && keeper_is_gone())
			ring3_poison("the node's keeper (process %d) is gone", ring3_region.keeper_pid);
	}
}

/* The thread's call is over. A program goes home with the vCPU; the keeper, and who ends, without. */
int ring3_host_leave(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	bool stays = tb->task && tb->proc != (unsigned long)&ring3_region.init_proc && !(r3t_flags(tb) & R3_F_GONE);

	if (!stays && is_handed(tb)) {
		turn_jitter();
		r3_release(&vcpu->owner);
		if (is_called(vcpu) && !ring3_poisoned() && acquire(tb)) {
			r3t_call(tb) = R3_CALL_DONE;
			return 1;
		}
	}
	r3t_call(tb) = R3_CALL_NONE;
	return 0;
}

int ring3_host_park(struct ring3_thread *tb, unsigned long mode, struct ring3_thread *to)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);

	switch (mode) {
	case R3_PARK_OUTSIDE:
		return ring3_host_leave(tb);

	case R3_PARK_SLEEP:
		/* Time stands still. */
		if (r3t_call(tb) == R3_CALL_DONE)
			return ring3_host_leave(tb);
		r3_release(&vcpu->owner);
		if (is_called(vcpu) && acquire(tb))
			return 1;
		return wait_turn(tb);

	case R3_PARK_HANDOVER:
		hand_over(to);
		if (r3t_call(tb) == R3_CALL_DONE) {
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		return wait_turn(tb);
	}
	return 1;
}

/* A call that is not on the fast path. */
int ring3_host_enter(struct ring3_thread *tb, int owned)
{
	switch (tb->nr) {
	case RING3_NR_KEEP:
		tb->ret = ring3_host_keep(tb);
		return 0;
	case RING3_NR_ADOPT:
		tb->ret = -ENOSYS;
		return 0;
	case RING3_NR_DRIVE:
		tb->ret = 0;
		if (!host_load(vcpu_pending(r3t_vcpu(tb))) || ring3_poisoned() || !acquire(tb))
			return 0;
		r3t_call(tb) = R3_CALL_DONE;
		return 1;
	case RING3_NR_TURN:
		/* A new thread: who made it has said so to its task, or will. */
		turn_jitter();
		return wait_turn(tb);
	case RING3_NR_REAP:
		host_store(&((struct ring3_proc *)tb->args[0])->state, RING3_PROC_DEAD);
	}
	if (!tb->task) {
		tb->ret = -EINVAL;
		return 0;
	}
	if (ring3_poisoned())
		return vcpu_fail(tb);
	r3t_call(tb) = R3_CALL_WANT;
	if (is_handed(tb)) {
		WRITE_ONCE(r3t_vcpu(tb)->driver, (unsigned long)tb);
		r3t_request(tb) |= R3_REQ_CALL;
		return 1;
	}
	turn_jitter();
	if (come(tb, R3_REQ_CALL))
		return 1;
	return wait_turn(tb);
}
