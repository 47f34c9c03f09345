// SPDX-License-Identifier: GPL-2.0
/*
 * vcpu.c - the right to run kernel code, and what a thread does without it
 *
 * Theory of operation
 * -------------------
 * All of this runs on a host thread's own stack, not on a task's: no kernel
 * function may be called, no kernel lock taken; only the region's shared
 * words and the host's futex are touched.
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
 *	polls		owner == tid | POLLING; here, in host_poll()
 *	acquires	wants the vCPU; here, in host_acquire(), sleeps on vcpu.owner
 *	waits		its call is in other hands; here, in host_wait(), sleeps on tb->word;
 *			one that let an idle vCPU go waits for time and peers too (watch.c)
 *
 * Every function that ends a state returns 1 (this thread holds the vCPU and resumes
 * the current task) or 0 (its call is over, the result is in tb->ret).
 *
 * The vCPU is handed over in three steps, since the thread that does it may be killed between any
 * two: OFFERED in the word of who is to have it, the owner's tid, then BATON in the
 * place of OFFERED. Who finds itself the owner and OFFERED for long takes it as it is.
 *
 * tests/src/bin/models has all this as a model, which is tried in all interleavings: a change
 * here is a change there.
 *
 * Whoever releases the vCPU looks at region->pending once more after that: the
 * one who set a bit either saw the vCPU free, and drove, or left it to us.
 */
#include <linux/errno.h>
#include <uapi/linux/futex.h>
#include <uapi/linux/poll.h>
#include <linux/kernel.h>
#include <linux/processor.h>
#include <asm/ring3.h>
#include <asm/ring3_poll.h>
#include <asm/timex.h>
#include <asm/unistd.h>
#include "vcpu.h"

#define SPIN_ACQUIRE		200		/* turns of pause, some 5-10 us */
#define SPIN_ACQUIRE_NS		50000ULL	/* of such turns with the CPU given away between */
#define NEW_CALL_EVERY		50		/* of those, for one that has a new call */
#define SPIN_WAIT		100
#define SPIN_MIN_NS		2000ULL		/* of idle polling; the cap is region->spin_ns */
#define COMES_NS		15000ULL	/* a called thread that has a CPU is there by then */
#define YIELDED_NS		2000ULL		/* away for longer than the system call takes */
#define CROWDED_NS		30000ULL	/* away for longer than a peer needs for a packet */
#define CROWDED_TIMES		4		/* for so many times as long it sleeps instead, */
#define CROWDED_MAX_NS		10000000ULL	/* this long at most */
#define ACQUIRE_TIMEOUT_NS	100000000L	/* then see whether the holder still lives */
#define ACQUIRE_FIRST_NS	1000000L	/* its way out may have missed us: entry.S */
#define ACQUIRE_LAST_NS		(8 * ACQUIRE_FIRST_NS)
#define WAIT_TIMEOUT_NS		800000000L	/* then see whether the keeper still lives */

struct ring3_cpu ring3_cpus[NR_CPUS] = { [0 ... NR_CPUS - 1] = { .patience = COMES_NS } };

/* The links are the business of vCPU 0's. */
static bool is_keep(struct ring3_thread *tb)
{
	return tb == &ring3_region.driver_thread[0];
}

static int fail(struct ring3_thread *tb)
{
	tb->ret = -EIO;
	r3t_call(tb) = R3_CALL_NONE;
	return 0;
}

/* A thread's word says something new and was `w` before: wakes it, wherever it sleeps. */
static void wake_thread(struct ring3_thread *tb, u32 w)
{
	if (w & RING3_WORD_SLEEPING)
		ring3_host_futex_wake(&tb->word, 1);
	else if (w & RING3_WORD_QUEUED)
		ring3_host_futex_wake(&r3t_vcpu(tb)->owner, INT_MAX);
}

void ring3_thread_notify(struct ring3_thread *tb, u32 bits)
{
	wake_thread(tb, host_or(&tb->word, bits));
}

/*
 * Calls a thread that sleeps, for its task needs it; false: it is awake. When it drives,
 * ring3_service() wakes the task.
 */
bool ring3_thread_call(struct ring3_thread *tb)
{
	if (!(host_load(&tb->word) & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)))
		return false;
	vcpu_cpu(r3t_vcpu(tb))->called = tb;
	ring3_thread_notify(tb, RING3_WORD_COME);
	return true;
}

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

/* A thread that was called is on its way: the host may have put it on this very CPU. */
static bool somebody_comes(struct ring3_cpu *cpu)
{
	struct ring3_thread *called = cpu->called;

	return called && called->tid && (host_load(&called->word) & RING3_WORD_COME);
}

/* `watched`: the thread, which lets go of an idle vCPU, sees to the deadline itself. */
static void release(struct ring3_vcpu *vcpu, bool watched)
{
	if (watched && host_load(&vcpu_cpu(vcpu)->away))
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) & ~R3_EXIT_KICK);
	ring3_settle(vcpu, watched);
	if (host_xchg(&vcpu->owner, 0) & RING3_OWNER_WAITERS)
		ring3_host_futex_wake(&vcpu->owner, 1);
	ring3_ports_call();
}

static bool try_acquire(struct ring3_thread *tb, u32 waiters)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	u32 o = host_load(&vcpu->owner);

	if (o && !(o & RING3_OWNER_POLLING))
		return false;
	if (!host_cas(&vcpu->owner, o, tb->tid | waiters | (o & RING3_OWNER_WAITERS)))
		return false;
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	return true;
}

bool ring3_try_acquire(struct ring3_thread *tb)
{
	return try_acquire(tb, 0);
}

/* The vCPU was handed to this thread, or is being handed. */
static bool is_handed(struct ring3_thread *tb)
{
	return (host_load(&r3t_vcpu(tb)->owner) & (RING3_OWNER_TID | RING3_OWNER_POLLING)) == tb->tid;
}

/*
 * It was offered, and BATON does not come: who hands it over has lost its CPU between two
 * instructions, or its life. It sees by the missing OFFERED that nothing is left to say.
 */
static bool take_offer(struct ring3_thread *tb)
{
	u32 w = host_load(&tb->word);

	return (w & RING3_WORD_OFFERED) && is_handed(tb) &&
	       host_cas(&tb->word, w, w & ~(RING3_WORD_OFFERED | RING3_WORD_COME));
}

static void give_baton(struct ring3_thread *to)
{
	u32 w;

	do {
		w = host_load(&to->word);
		if (!(w & RING3_WORD_OFFERED))
			return;
	} while (!host_cas(&to->word, w, (w & ~RING3_WORD_OFFERED) | RING3_WORD_BATON));
	wake_thread(to, w);
}

/*
 * Gives the CPU to whoever wants it, for what we wait for may have to run here. False:
 * somebody took it for long, and to sleep is better than to come back again and again.
 */
static bool yielded_briefly(u64 now)
{
	ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	return ring3_clock() - now <= CROWDED_NS;
}

/*
 * The thread need not acquire any more. If it slept, its wake-up was that of a release, which
 * wakes one: then another has to have it, who else would sleep beside a free vCPU.
 */
static int need_not(struct ring3_vcpu *vcpu, u32 waiters)
{
	if (waiters)
		ring3_host_futex_wake(&vcpu->owner, 1);
	return -1;
}

/*
 * A holder lets go within microseconds, mostly, and a sleep and a wake-up take ten times that.
 * Two threads that both sleep for each other's calls would form a convoy. So would two that
 * only make calls, if each took the vCPU as soon as it is free: every call would change the
 * task and move what both use to the other CPU. Who comes with a new call looks rarely, and
 * the holder makes some dozen calls meanwhile.
 *
 * Returns 1 with the vCPU, 0 if the node is poisoned, -1 if meanwhile the thread's
 * word got one of `bits` (its call was finished or handed over).
 */
static int host_acquire(struct ring3_thread *tb, u32 bits)
{
	int every = bits ? 1 : NEW_CALL_EVERY;
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	long patience = ACQUIRE_FIRST_NS, waited = 0;
	u32 waiters = 0;
	u64 now, until = 0;
	long ret;
	u32 o;
	int i;

	for (;;) {
		for (i = 0; i < SPIN_ACQUIRE; i++) {
			if (i % every == 0 && try_acquire(tb, waiters)) {
				/* Of one who died before it could hand over. */
				if (host_load(&tb->word) & RING3_WORD_OFFERED)
					host_andnot(&tb->word, RING3_WORD_OFFERED);
				return 1;
			}
			if (host_load(&tb->word) & bits)
				return need_not(vcpu, waiters);
			host_pause();
		}
		if (ring3_poisoned())
			return 0;
		o = host_load(&vcpu->owner);
		if (!o || (o & RING3_OWNER_POLLING))
			continue;
		if (bits && is_handed(tb))
			return need_not(vcpu, waiters);
		now = ring3_clock();
		if (!until)
			until = now + SPIN_ACQUIRE_NS;
		if (now < until) {
			if (!yielded_briefly(now))
				until = now;
			continue;
		}
		until = 0;
		if (!(o & RING3_OWNER_WAITERS) &&
		    !host_cas(&vcpu->owner, o, o | RING3_OWNER_WAITERS))
			continue;
		waiters = RING3_OWNER_WAITERS;
		if (bits && (host_or(&tb->word, RING3_WORD_QUEUED) & bits)) {
			host_andnot(&tb->word, RING3_WORD_QUEUED);
			continue;
		}
		ret = ring3_host_futex_wait(&vcpu->owner, o | RING3_OWNER_WAITERS, patience);
		if (bits)
			host_andnot(&tb->word, RING3_WORD_QUEUED);
		if (ret == -ETIMEDOUT) {
			waited += patience;
			patience = min(2 * patience, ACQUIRE_LAST_NS);
			if (waited < ACQUIRE_TIMEOUT_NS)
				continue;
			waited = 0;
			ring3_take_from_dead(vcpu);
		}
	}
}

/* Without it no timer fires and nobody may join: the node is over. */
static bool keeper_is_gone(void)
{
	return ring3_host_syscall(__NR_kill, ring3_region.keeper_pid, 0, 0, 0, 0, 0) == -ESRCH;
}

/*
 * The thread waited with its own call in other hands, and has the vCPU again. Maybe the call
 * was finished meanwhile, between release and acquire: then it is the driver's to go home,
 * and nothing may be left of DONE, which the next call would take for its own. Nor of an offer
 * by one who died before it could hand over, for who has one is taken to have run nothing.
 */
static int drive_again(struct ring3_thread *tb)
{
	u32 w = host_load(&tb->word);

	if (w & (RING3_WORD_DONE | RING3_WORD_OFFERED))
		host_andnot(&tb->word, RING3_WORD_DONE | RING3_WORD_OFFERED);
	if (w & RING3_WORD_DONE)
		r3t_call(tb) = R3_CALL_DONE;
	return 1;
}

/* How a thread comes to wait for what others do with its call. */
enum waits {
	CALLED,		/* they had it already */
	POLLED,		/* until now it polled */
	WATCHES,	/* it let an idle vCPU go: watch.c */
};

/*
 * The thread's call is in other hands. One that polled until now stays awake for a moment even
 * where the vCPU is free: who took it over had something to do, as the other end of what
 * we wait for has just before it answers.
 */
static int wait_for_it(struct ring3_thread *tb, enum waits how)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	int spin = SPIN_WAIT;
	long ret;
	u32 w;

	for (;;) {
		w = host_load(&tb->word);
		if (w & RING3_WORD_BATON) {
			if (is_handed(tb)) {
				host_andnot(&tb->word, HANDED_BITS | RING3_WORD_COME);
				return 1;
			}
			/* Of one who came back late to an offer that was taken; this is another. */
			host_cas(&tb->word, w, (w & ~RING3_WORD_BATON) | RING3_WORD_OFFERED);
			continue;
		}
		if (w & RING3_WORD_DONE) {
			host_andnot(&tb->word, RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_OFFERED);
			return 0;
		}
		if ((w & (RING3_WORD_SIGNAL | RING3_WORD_COME)) && !is_handed(tb)) {
			int got = host_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);

			if (got == 0)
				return fail(tb);
			if (got < 0)
				continue;
			w = host_andnot(&tb->word, RING3_WORD_SIGNAL);
			/*
			 * Whoever finished the call did so before we got the vCPU. It may be pending
			 * what came since, for who asks for a look at it has seen that we drive.
			 */
			if (host_load(&tb->word) & RING3_WORD_DONE) {
				host_andnot(&tb->word, RING3_WORD_DONE | RING3_WORD_COME | RING3_WORD_OFFERED);
				return ring3_host_leave(tb);
			}
			if (w & RING3_WORD_SIGNAL)
				r3t_request(tb) |= R3_REQ_SIGNAL;
			return 1;
		}
		if (ring3_poisoned())
			return fail(tb);
		if (spin > 0 && (how == POLLED || host_load(&vcpu->owner))) {
			spin--;
			host_pause();
			continue;
		}
		if (!host_cas(&tb->word, w, w | RING3_WORD_SLEEPING))
			continue;
		if (how != WATCHES)
			ret = ring3_host_futex_wait(&tb->word, w | RING3_WORD_SLEEPING, WAIT_TIMEOUT_NS);
		else if (ring3_watch(tb, w | RING3_WORD_SLEEPING, WAIT_TIMEOUT_NS, &ret)) {
			host_andnot(&tb->word, RING3_WORD_SLEEPING);
			return drive_again(tb);
		}
		host_andnot(&tb->word, RING3_WORD_SLEEPING);
		if (ret != -ETIMEDOUT)
			continue;
		if (take_offer(tb))
			return 1;
		if (keeper_is_gone())
			ring3_poison("the node's keeper (process %d) is gone",
				     ring3_region.keeper_pid);
	}
}

static int host_wait(struct ring3_thread *tb, enum waits how)
{
	int drives;

	if (how != WATCHES)
		return wait_for_it(tb, how);
	ring3_watch_begin(tb);
	drives = wait_for_it(tb, how);
	ring3_watch_over(tb);
	return drives;
}

/* The thread's call is over: let go and go home, unless something is left to do. */
int ring3_host_leave(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	/* The fast path comes here with the vCPU released or not. */
	u32 o = host_load(&vcpu->owner);

	if ((o & RING3_OWNER_TID) == tb->tid && vcpu->driver == (unsigned long)tb)
		release(vcpu, false);
	if (host_load(vcpu_pending(vcpu)) && !ring3_poisoned() && try_acquire(tb, 0)) {
		r3t_call(tb) = R3_CALL_DONE;
		return 1;
	}
	r3t_call(tb) = R3_CALL_NONE;
	return 0;
}

/* The descriptors of the node's ports in this process. */
static int fd_ports(struct ring3_thread *tb, struct pollfd *fds, u32 *bits)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;
	int i, n = 0;

	for (i = 0; proc && i < RING3_PORTS_MAX; i++) {
		if (proc->port_fd[i] < 0 || ring3_poll_watches(i) || !ring3_irq_wanted(i))
			continue;
		bits[n] = RING3_IRQ_PORT(i);
		fds[n++] = (struct pollfd) { proc->port_fd[i], POLLIN, 0 };
	}
	return n;
}

/* Those that have something; one that has an error besides is left to the keeper. */
static u32 fd_ports_ready(struct pollfd *fds, const u32 *bits, int n)
{
	u32 ready = 0;
	int i;

	if (ring3_host_syscall(__NR_poll, (long)fds, n, 0, 0, 0, 0) <= 0)
		return 0;
	for (i = 0; i < n; i++)
		if (fds[i].revents == POLLIN)
			ready |= bits[i];
	return ready;
}

/*
 * The idle task is parked and this thread's call waits: look at what memory
 * shows, without a system call. Returns as host_wait(); 1 also when it gives up.
 */
static int host_poll(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u32 mine = tb->tid | RING3_OWNER_POLLING;
	u64 start, now, cap = READ_ONCE(ring3_region.spin_ns);
	struct pollfd fds[RING3_PORTS_MAX];
	u32 fd_bits[RING3_PORTS_MAX];
	int n_fds = fd_ports(tb, fds, fd_bits);
	bool event = false, beside_peer, crowded, yielded = false;
	u32 ready, o;

	start = ring3_clock();
	/*
	 * Spinning pays when what we wait for comes while we do. A spin in vain that
	 * was followed by work soon after was too short: a sleep and a wake-up on
	 * another CPU alone take that long. One followed by a long sleep was too long.
	 */
	if (cpu->gave_up) {
		cpu->spin_ns = start - cpu->gave_up < 4 * cap ? cap : cpu->spin_ns / 2;
		cpu->gave_up = 0;
	}
	cpu->spin_ns = clamp(cpu->spin_ns, min(cap, SPIN_MIN_NS), cap);
	crowded = start < cpu->crowded_until && cpu->crowded_cpu == ring3_host_cpu();
	if (crowded)
		cpu->spin_ns = min(cap, SPIN_MIN_NS);
	ring3_poll_disarm();
	beside_peer = ring3_poll_beside_peer();
	WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL);

	o = host_load(&vcpu->owner);
	if (!host_cas(&vcpu->owner, o, mine | (o & RING3_OWNER_WAITERS)))
		host_or(&vcpu->owner, RING3_OWNER_POLLING);
	if (o & RING3_OWNER_WAITERS) {
		ring3_host_futex_wake(&vcpu->owner, 1);
		/* It takes the vCPU from us, and the host may have put it on this CPU. */
		ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	}

	for (;;) {
		o = host_load(&vcpu->owner);
		if ((o & ~RING3_OWNER_WAITERS) != mine) {
			cpu->patience = yielded ? 0 : COMES_NS;
			return host_wait(tb, POLLED);
		}
		yielded = false;
		if (host_load(vcpu_pending(vcpu)) ||
		    (host_load(&tb->word) & RING3_WORD_SIGNAL)) {
			event = true;
			break;
		}
		ready = ring3_poll_ready();
		if (!ready && n_fds)
			ready = fd_ports_ready(fds, fd_bits, n_fds);
		if (ready) {
			host_or(vcpu_pending(vcpu), ready);
			event = true;
			break;
		}
		now = ring3_clock();
		if (now >= READ_ONCE(vcpu->deadline)) {
			host_or(vcpu_pending(vcpu), RING3_IRQ_TIMER);
			break;
		}
		if (now - start >= cpu->spin_ns) {
			cpu->gave_up = now;
			break;
		}
		if (!beside_peer && !n_fds &&
		    !(now - start >= cpu->patience && somebody_comes(cpu))) {
			host_pause();
			continue;
		}
		/*
		 * What we wait for wants this very CPU (or may want it: nobody tells where
		 * the far end of a host's device is): the host's scheduler likes to put a
		 * thread beside the one that woke it. If others with more to do want it
		 * too it is better to sleep and be woken: for long beside one that computes, who
		 * comes back in milliseconds, for a moment where it was the peer and a thread of the keeper.
		 */
		if (!yielded_briefly(now)) {
			u64 back = ring3_clock();

			cpu->crowded_until = back + min(CROWDED_MAX_NS, CROWDED_TIMES * (back - now));
			cpu->crowded_cpu = ring3_host_cpu();
			crowded = true;
		}
		yielded = ring3_clock() - now > YIELDED_NS;
		if (crowded) {
			cpu->gave_up = ring3_clock();
			break;
		}
		beside_peer = ring3_poll_beside_peer();
	}
	do {
		o = host_load(&vcpu->owner);
		if ((o & ~RING3_OWNER_WAITERS) != mine)
			return host_wait(tb, POLLED);
	} while (!host_cas(&vcpu->owner, o, o & ~RING3_OWNER_POLLING));

	if (event && (host_load(&tb->word) & RING3_WORD_SIGNAL)) {
		host_andnot(&tb->word, RING3_WORD_SIGNAL);
		r3t_request(tb) |= R3_REQ_SIGNAL;
	}
	return 1;
}

int ring3_host_park(struct ring3_thread *tb, unsigned long mode, struct ring3_thread *to)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	u32 o;
	int got;

	switch (mode) {
	case R3_PARK_OUTSIDE:
		return ring3_host_leave(tb);

	case R3_PARK_POLL:
		if (r3t_call(tb) == R3_CALL_DONE)
			return ring3_host_leave(tb);
		return host_poll(tb);

	case R3_PARK_SLEEP:
		if (r3t_call(tb) == R3_CALL_DONE) {
			ring3_settle(vcpu, !is_keep(tb) || !vcpu_cpu(vcpu)->keep_watches);
			return ring3_host_leave(tb);
		}
		release(vcpu, true);
		if (host_load(vcpu_pending(vcpu)) && try_acquire(tb, 0)) {
			ring3_tell_keep(vcpu);
			return drive_again(tb);
		}
		return host_wait(tb, WATCHES);

	case R3_PARK_HANDOVER:
		WRITE_ONCE(vcpu->driver, (unsigned long)to);
		host_or(&to->word, RING3_WORD_OFFERED);
		do {
			o = host_load(&vcpu->owner);
		} while (!host_cas(&vcpu->owner, o,
				   to->tid | (o & RING3_OWNER_WAITERS)));
		give_baton(to);
		if (r3t_call(tb) == R3_CALL_DONE) {
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		return host_wait(tb, CALLED);

	case R3_PARK_YIELD:
		release(vcpu, false);
		if (r3t_call(tb) == R3_CALL_DONE) {
			/* Home; what is still runnable is KEEP's to run. */
			host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
			ring3_kick(vcpu);
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		got = host_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);
		if (got < 0)
			return host_wait(tb, CALLED);
		return got ? drive_again(tb) : fail(tb);
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
		host_store(&vcpu_cpu(vcpu)->watch_lost, 1);
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
			if (try_acquire(tb, 0)) {
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
		look_after_dead();
	}
	if (!tb->task) {
		tb->ret = -EINVAL;
		return owned ? ring3_host_leave(tb) : 0;
	}
	/* Who died has one vCPU; the others would go on. */
	if (IS_ENABLED(CONFIG_SMP) && !owned && host_load(&ring3_region.state) == RING3_POISONED)
		return fail(tb);
	if (!owned && host_acquire(tb, 0) != 1)
		return fail(tb);
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	r3t_call(tb) = R3_CALL_WANT;
	r3t_request(tb) |= R3_REQ_CALL;
	return 1;
}
