// SPDX-License-Identifier: GPL-2.0
/*
 * kill.c - SIGKILL and SIGSTOP to processes of the same node
 *
 * A process that dies inside kernel code poisons its node, unless an adopter continues the code; one that stops
 * there holds the node up. The host's SIGKILL and SIGSTOP can't be deferred. But if a process of the node sends
 * one, the gate can send it when no target is in kernel code: while the sender owns the vCPU (or all vCPUs). The
 * sender takes the owner word, does not drive, and keeps the word until the targets have died or stopped. If the
 * vCPU does not become free in time, the signal is sent anyway.
 *
 * Not covered: a thread that is stopped while it waits awake may be handed the vCPU later, and holds the node up
 * then.
 *
 * A process that stops itself must not own the vCPU. It stops the other targets first, one by one, then brings its
 * own threads out of the image (stop.c), and then makes the original call.
 *
 * The sender may be killed meanwhile (it may be in the target group itself), and must not poison the node by that.
 * So from before it takes the word until after it has given it back, it looks like a thread that was handed the
 * vCPU and has not taken it up yet: BATON is set in its word. If a thread finds such an owner dead, it knows that
 * no kernel code was running, and frees the vCPU.
 *
 * All ways to send these signals lead here: kill() of a process or a group, tgkill() and its like (for any thread:
 * the process dies), rt_sigqueueinfo(), pidfd_send_signal().
 */
#include "policy.h"
#include "internal.h"
#include "ring3_lock.h"
#include "tuning.h"
#include <linux/futex.h>
#include <linux/poll.h>

#define TARGETS_MAX	16	/* targets whose end or stop is awaited */
#define SIG_KILL	9
#define SIG_STOP	19
#define PIDFD_GROUP	4	/* PIDFD_SIGNAL_PROCESS_GROUP, of Linux 6.9 */

struct targets {
	struct pollfd fds[TARGETS_MAX];
	s32 pids[TARGETS_MAX];
	u32 count;
	bool any;		/* some target is of the node, or is this process */
	bool self;
};

static void targets_add(struct targets *t, s32 pid)
{
	long fd;

	t->any = true;
	if (pid == host_syscall0(__NR_getpid)) {
		t->self = true;
		return;
	}
	if (t->count == TARGETS_MAX)
		return;
	fd = host_syscall2(__NR_pidfd_open, pid, 0);
	if (fd < 0)
		return;		/* the process has ended, or no descriptor is left: not awaited */
	t->pids[t->count] = pid;
	t->fds[t->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

/* The processes of the node that kill(pid) means: one, or those of a process group. */
static void targets_find(struct targets *t, s32 pid)
{
	s32 group = pid == 0 ? host_syscall1(__NR_getpgid, 0) : pid < -1 ? -pid : 0;
	struct ring3_proc *proc;
	u32 i = 0;

	while ((proc = proc_next(&i))) {
		s32 it = READ_ONCE(proc->pid);

		if (it == pid || pid == -1 ||
		    (group && host_syscall1(__NR_getpgid, it) == group))
			targets_add(t, it);
	}
}

static void targets_done(struct targets *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		host_syscall1(__NR_close, t->fds[i].fd);
}

static void targets_wait(struct targets *t)
{
	u32 i;

	/* One after the other: a dead one costs nothing, and a living one is waited for up to a limit. */
	for (i = 0; i < t->count; i++)
		if (host_syscall3(__NR_poll, (long)&t->fds[i], 1, KILL_DEATH_MS) != 1)
			break;
}

/*
 * Waits until the first thread has stopped: then the host has told the others, and none of them executes another
 * instruction of its own.
 */
static void target_stops(s32 pid)
{
	char state;
	int i;

	for (i = 0; i < KILL_STOP_NAPS; i++) {
		state = process_state(pid);
		if (!state || state == 'T' || state == 't' || state == 'Z')
			break;
		host_nap(KILL_STOP_NAP_NS);
	}
}

static void targets_stop(struct targets *t)
{
	u32 i;

	for (i = 0; i < t->count; i++)
		target_stops(t->pids[i]);
}

static struct ring3_vcpu *vcpu_next(const struct ring3_vcpu *vcpu)
{
	return (struct ring3_vcpu *)READ_ONCE(vcpu->next);
}

static void vcpu_wake_one(struct ring3_vcpu *vcpu)
{
	__atomic_fetch_add(&vcpu->wakes, 1, __ATOMIC_SEQ_CST);
	host_syscall3(__NR_futex, (long)&vcpu->owner, FUTEX_WAKE, 1);
}

static void vcpu_give(struct ring3_vcpu *vcpu)
{
	u32 *kick = &vcpu->kick, pending = READ_ONCE(vcpu->pending);

	if (r3_release(&vcpu->owner))
		vcpu_wake_one(vcpu);
	/*
	 * Interrupts that another vCPU or ring3-ports sent to this vCPU have waited for this thread, which does not
	 * drive.
	 */
	if (vcpu == gate.region->vcpu) {
		kick = &gate.region->kick;
		pending |= READ_ONCE(gate.region->pending);
	}
	if (!pending)
		return;
	__atomic_fetch_add(kick, 1, __ATOMIC_SEQ_CST);
	host_syscall3(__NR_futex, (long)kick, FUTEX_WAKE, 1);
}

/* True if no flag says any more that a thread sleeps on the owner word. */
static bool vcpu_forgot(struct ring3_vcpu *vcpu)
{
	u32 pending = __atomic_load_n(&gate.region->pending, __ATOMIC_SEQ_CST);

	return !(pending & RING3_IRQ_SLEEPER) && !r3_owner_waits(__atomic_load_n(&vcpu->owner, __ATOMIC_SEQ_CST));
}

/*
 * The owner word is `o': sleeps until the owner releases it, as vcpu_announce() in the image does. The store of the
 * fast path may erase WAITERS, so SLEEPER says it too. A store that is under way is waited for.
 */
static void vcpu_sleep(struct ring3_vcpu *vcpu, u32 o)
{
	struct __kernel_timespec turn = { .tv_nsec = KILL_TURN_NS };
	u32 wakes = __atomic_load_n(&vcpu->wakes, __ATOMIC_SEQ_CST);
	int i;

	if (!r3_owner_waits(o) && !r3_say_waiting(&vcpu->owner, o))
		return;
	o |= RING3_OWNER_WAITERS;
	/* Several vCPUs are released by a locked instruction, which sees WAITERS. */
	if (!vcpu_next(gate.region->vcpu))
		__atomic_fetch_or(&gate.region->pending, RING3_IRQ_SLEEPER, __ATOMIC_SEQ_CST);
	for (i = 0; i < KILL_DRAIN_TURNS; i++) {
		__builtin_ia32_pause();
		if (__atomic_load_n(&vcpu->owner, __ATOMIC_SEQ_CST) != o)
			return;
	}
	if (host_syscall4(__NR_futex, (long)&vcpu->owner, FUTEX_WAIT, o, (long)&turn) == -ETIMEDOUT &&
	    vcpu_forgot(vcpu) && __atomic_load_n(&vcpu->wakes, __ATOMIC_SEQ_CST) == wakes)
		__atomic_fetch_add(&gate.region->late, 1, __ATOMIC_SEQ_CST);
}

static bool vcpu_take(struct ring3_vcpu *vcpu, struct ring3_thread *me, int turns)
{
	u32 waiters = 0, o;
	int i;

	for (i = 0; i < turns; i++) {
		if (r3_freeze(&vcpu->owner, me->tid, waiters, &o)) {
			WRITE_ONCE(vcpu->driver, (u64)me);
			return true;
		}
		if (o & RING3_OWNER_POLLING) {
			host_nap(KILL_POLLER_NS);
			continue;
		}
		waiters = RING3_OWNER_WAITERS;
		vcpu_sleep(vcpu, o);
	}
	/* This wake-up may have been meant for another waiter. */
	vcpu_wake_one(vcpu);
	return false;
}

static void vcpus_give(const struct ring3_vcpu *end)
{
	struct ring3_vcpu *vcpu, *next;

	for (vcpu = gate.region->vcpu; vcpu != end; vcpu = next) {
		next = vcpu_next(vcpu);
		vcpu_give(vcpu);
	}
}

/*
 * Takes all vCPUs, or none. With several, this thread waits only briefly for one while it owns others: the owner of
 * the one may be waiting for those.
 */
static bool vcpus_take(struct ring3_thread *me)
{
	struct ring3_vcpu *first = gate.region->vcpu, *vcpu;
	int turns, i;

	r3_word_set(&me->word, RING3_WORD_BATON);
	if (!vcpu_next(first))
		return vcpu_take(first, me, KILL_TAKE_TURNS);
	for (i = 0; i < KILL_TAKE_TURNS; i += KILL_TAKE_SEVERAL) {
		for (vcpu = first; vcpu; vcpu = vcpu_next(vcpu)) {
			turns = vcpu == first ? KILL_TAKE_SEVERAL : 1;
			if (!vcpu_take(vcpu, me, turns))
				break;
		}
		if (!vcpu)
			return true;
		vcpus_give(vcpu);
	}
	return false;
}

/* Sends to t what r says, which is SIGKILL or, if `stops', SIGSTOP, while no target is in kernel code. */
static long send_outside_kernel(struct gate_regs *r, struct targets *t, bool stops)
{
	struct ring3_thread *me = gate_thread();
	u64 mask = signal_block_all();	/* no signal handler may enter the node now */
	bool taken = vcpus_take(me);
	long ret = host_syscall6(r->nr, r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5]);

	if (taken) {
		if (!ret && stops)
			targets_stop(t);
		else if (!ret)
			targets_wait(t);
		vcpus_give(NULL);
	}
	r3_word_clear(&me->word, RING3_WORD_BATON);
	signal_set_mask(mask);
	return ret;
}

/* True if the call names one process or one thread, not a group. */
static bool is_for_one(const struct gate_regs *r)
{
	return r->nr == __NR_tkill || r->nr == __NR_tgkill || (r->nr == __NR_kill && (s32)r->a[0] > 0);
}

/* The sender is among the targets of a stop. As on the host, processes that it may not signal are left out. */
static long stop_self(struct gate_regs *r, struct targets *t)
{
	struct targets one = { .any = true, .count = 1 };
	struct gate_regs each = { .nr = __NR_kill, .a = { 0, SIG_STOP } };
	long ret;
	u32 i;

	for (i = 0; i < t->count; i++) {
		each.a[0] = one.pids[0] = t->pids[i];
		send_outside_kernel(&each, &one, true);
	}
	while (!stop_others_for_now())
		stop_undo();
	/* If the host lets another thread of this process take the signal, this thread would go on, into the node. */
	if (is_for_one(r))
		ret = host_syscall3(__NR_tgkill, host_syscall0(__NR_getpid), host_syscall0(__NR_gettid), SIG_STOP);
	else
		ret = gate_host_regs(r);
	stop_undo();
	return ret;
}

/* True for the signals that no program can block or catch. */
static bool is_hard(u64 sig)
{
	return sig == SIG_KILL || sig == SIG_STOP;
}

static long kill_pid(struct gate_regs *r, u64 sig, s32 pid)
{
	struct targets t = { .count = 0 };
	long ret;

	if (!is_hard(sig) || !gate.region)
		return gate_host_regs(r);
	targets_find(&t, pid);
	if (sig == SIG_STOP && t.self)
		ret = stop_self(r, &t);
	else
		ret = t.any ? send_outside_kernel(r, &t, sig == SIG_STOP) : gate_host_regs(r);
	targets_done(&t);
	return ret;
}

/* The process of a thread of the node; 0: none. */
static s32 process_of(s32 tid)
{
	struct ring3_proc *proc;
	u32 i = 0;

	if (tid <= 0)
		return 0;
	while ((proc = proc_next(&i)) && host_syscall3(__NR_tgkill, proc->pid, tid, 0))
		;
	return proc ? proc->pid : 0;
}

long do_kill(struct gate_regs *r)
{
	return kill_pid(r, r->a[1], (s32)r->a[0]);
}

long do_tkill(struct gate_regs *r)
{
	s32 pid = is_hard(r->a[1]) ? process_of((s32)r->a[0]) : 0;

	return pid ? kill_pid(r, r->a[1], pid) : gate_host_regs(r);
}

/* tgkill and rt_tgsigqueueinfo: process, thread, signal. */
long do_tgkill(struct gate_regs *r)
{
	s32 pid = (s32)r->a[0];

	return pid > 0 ? kill_pid(r, r->a[2], pid) : gate_host_regs(r);
}

long do_pidfd_send_signal(struct gate_regs *r)
{
	s32 pid = is_hard(r->a[1]) ? pidfd_pid(r->a[0]) : 0;

	if (pid <= 0)
		return gate_host_regs(r);
	return kill_pid(r, r->a[1], r->a[3] & PIDFD_GROUP ? -pid : pid);
}
