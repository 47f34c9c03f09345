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

#define ACQUIRE_TURNS		4		/* of pause between two looks, some 0.3 us */
#define GONE_LOOKS		3		/* at a free vCPU: nobody is making calls */
#define ACQUIRE_NEW_NS		1500ULL		/* a new call leaves the holder alone for so long */
#define ACQUIRE_SPIN_NS		50000ULL	/* of waiting awake, with the CPU given away every */
#define ACQUIRE_YIELD_NS	2000ULL		/* so often: the holder may have to run on it; */
#define ACQUIRE_CROWDED_NS	8000ULL		/* of waiting awake where the CPUs are crowded */
#define DRAIN_TURNS		16		/* of pause, some 1 us: longer than a store takes to arrive */
#define GIVE_WAY_TURNS		32		/* for as long as a waiter that is awake takes to take over */
#define SPIN_WAIT		100		/* turns of pause, some 8 us, */
#define SPIN_WAIT_YIELD		25		/* with the CPU given away every so often */
#define SPIN_MIN_NS		2000ULL		/* of idle polling; the cap is region->spin_ns */
#define COMES_NS		15000ULL	/* a called thread that has a CPU is there by then */
#define YIELDED_NS		2000ULL		/* away for longer than the system call takes */
#define CROWDED_NS		30000ULL	/* away for longer than a peer needs for a packet */
#define CROWDED_TIMES		4		/* for so many times as long nobody polls or yields then */
#define COMPUTES_NS		500000ULL	/* away for longer than anybody but one that computes takes: */
#define CROWDED_FIRST_NS	10000000ULL	/* nobody does so for this long, and for twice as long where */
#define CROWDED_MAX_NS		160000000ULL	/* that is found again soon after, this long at most */
#define ACQUIRE_SLEEP_NS	8000000L	/* who was woken may have died before it took the vCPU */
#define ACQUIRE_TIMEOUT_NS	100000000L	/* then see whether the holder still lives */
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

/*
 * Others want the CPU that this thread runs on: a poller keeps the thread that it waits for from running, and
 * pays for it. The host's scheduler takes what was polled or given away by a yield for used, and lets threads that
 * compute go first for milliseconds. So for a while the node's threads on this CPU sleep at once instead, and are woken.
 */
static struct ring3_crowd *crowd_here(struct ring3_cpu *cpu)
{
	return &cpu->crowd[ring3_host_cpu() % CROWDS];
}

static bool is_crowded(struct ring3_cpu *cpu, u64 now)
{
	return now < READ_ONCE(crowd_here(cpu)->until);
}

static void wake(struct ring3_thread *tb, u32 w)
{
	if (w & RING3_WORD_SLEEPING)
		ring3_host_futex_wake(&tb->word, 1);
	else if (w & RING3_WORD_QUEUED)
		ring3_host_futex_wake(&r3t_vcpu(tb)->owner, INT_MAX);
}

/*
 * Where the CPUs are crowded a thread that is woken runs at once, mostly, on the CPU of the one that woke it, and needs the
 * vCPU, which that one still has: both would have to sleep once more. So the holder wakes it after it has let go.
 */
static bool wake_later(struct ring3_thread *tb, u32 w)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);

	if (vcpu != r3t_vcpu(tb) || cpu->n_wakes == WAKES_MAX || !is_crowded(cpu, ring3_clock()))
		return false;
	cpu->wakes[cpu->n_wakes++] = (struct ring3_wake) { tb, w };
	/* So that it does not let go by the fast path. */
	host_or(&vcpu->owner, RING3_OWNER_WAITERS);
	return true;
}

/* A thread's word says something new and was `w` before: wakes it, wherever it sleeps. */
static void wake_thread(struct ring3_thread *tb, u32 w)
{
	if ((w & (RING3_WORD_SLEEPING | RING3_WORD_QUEUED)) && !wake_later(tb, w))
		wake(tb, w);
}

/* The wake-ups that were put off, taken by the holder to be carried out without the vCPU. */
struct wakes {
	unsigned int n;
	struct ring3_wake at[WAKES_MAX];
};

static void take_wakes(struct ring3_cpu *cpu, struct wakes *wakes)
{
	unsigned int i;

	wakes->n = cpu->n_wakes;
	for (i = 0; i < wakes->n; i++)
		wakes->at[i] = cpu->wakes[i];
	cpu->n_wakes = 0;
}

static void carry_out(const struct wakes *wakes)
{
	unsigned int i;

	for (i = 0; i < wakes->n; i++)
		wake(wakes->at[i].tb, wakes->at[i].word);
}

/* For a holder that does not let go soon. */
void ring3_wake_now(struct ring3_vcpu *vcpu)
{
	struct wakes wakes;

	take_wakes(vcpu_cpu(vcpu), &wakes);
	carry_out(&wakes);
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

/*
 * The vCPU was let go, and somebody waits for it awake: who takes it within a microsecond, if the next call of the thread that was
 * just here does not come first, in whose CPU the word's cache line is. So that one lets it go first. A waiter that
 * has lost its CPU asks no more, and nobody waits for it again.
 */
static void give_way(struct ring3_vcpu *vcpu)
{
	int turns = GIVE_WAY_TURNS;

	if (!(host_andnot(vcpu_pending(vcpu), RING3_IRQ_WAITER) & RING3_IRQ_WAITER))
		return;
	while (turns-- && !host_load(&vcpu->owner))
		host_pause();
}

/* `watched`: the thread, which lets go of an idle vCPU, sees to the deadline itself. */
static void release(struct ring3_vcpu *vcpu, bool watched)
{
	struct wakes wakes;

	if (watched && host_load(&vcpu_cpu(vcpu)->away))
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) & ~R3_EXIT_KICK);
	ring3_settle(vcpu, watched);
	/* Who waits has its turn now, or as soon as it is awake. */
	WRITE_ONCE(*vcpu_yield_word(vcpu), 0);
	take_wakes(vcpu_cpu(vcpu), &wakes);
	if (host_xchg(&vcpu->owner, 0) & RING3_OWNER_WAITERS)
		ring3_host_futex_wake(&vcpu->owner, 1);
	carry_out(&wakes);
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
	wake(to, w);
}

/* The thread was away from `from` to `to`, without having asked for a sleep. True: for long, the CPUs are crowded. */
static bool was_crowded_out(struct ring3_cpu *cpu, u64 from, u64 to)
{
	struct ring3_crowd *crowd;
	u64 until, last, ns, away = to - from;

	if (away <= CROWDED_NS)
		return false;
	crowd = crowd_here(cpu);
	until = READ_ONCE(crowd->until);
	last = READ_ONCE(crowd->ns);
	if (away < COMPUTES_NS) {
		ns = CROWDED_TIMES * away;
	} else {
		ns = to < until + 2 * last ? min(2 * last, CROWDED_MAX_NS) : CROWDED_FIRST_NS;
		WRITE_ONCE(crowd->ns, ns);
	}
	WRITE_ONCE(crowd->until, max(until, to + ns));
	return true;
}

/*
 * Gives the CPU to whoever wants it, for what we wait for may have to run here. False:
 * somebody took it for long, and to sleep is better than to come back again and again.
 */
static bool yielded_briefly(struct ring3_cpu *cpu, u64 now)
{
	ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
	return !was_crowded_out(cpu, now, ring3_clock());
}

/* Says in `pending' that a thread waits, for the holder to see as it leaves, and in long kernel work (irq.c). */
static void ask_for(struct ring3_vcpu *vcpu, u32 how)
{
	if (!(host_load(vcpu_pending(vcpu)) & how))
		host_or(vcpu_pending(vcpu), how);
}

/*
 * The thread is about to sleep on the owner word with the value `o`, WAITERS in it: from now on who lets go wakes it. The
 * holder may be between its store and its look at `pending', and its store is waited for. False: the word is another.
 */
static bool announce(struct ring3_vcpu *vcpu, u32 o)
{
	u32 was = o & ~RING3_OWNER_WAITERS;
	int i;

	if (!was || (was & RING3_OWNER_POLLING))
		return false;
	if (host_load(&vcpu->owner) != o && !host_cas(&vcpu->owner, was, o))
		return false;
	/* The way out of the fast path may overwrite WAITERS, but it looks here after that. */
	ask_for(vcpu, RING3_IRQ_SLEEPER);
	for (i = 0; i < DRAIN_TURNS; i++) {
		host_pause();
		if (host_load(&vcpu->owner) != o)
			return false;
	}
	return true;
}

/* What came of waiting for the vCPU awake, or asleep. */
enum acquired {
	NOT_NEEDED = -1,	/* the thread's word got one of the bits */
	POISONED = 0,
	TAKEN = 1,
	TOO_LONG = 2,
};

/*
 * A holder lets go within microseconds, mostly, and a sleep and a wake-up take ten times that.
 * Two threads that both sleep for each other's calls would form a convoy. So would two that
 * only make calls, if each took the vCPU as soon as it is free: every call would change the
 * task and move what both use to the other CPU. So a new call leaves the holder alone for a moment, unless that
 * has gone, and it makes some dozen calls meanwhile. From then on the thread asks for its turn.
 */
static enum acquired acquire_awake(struct ring3_thread *tb, u32 bits, u32 waiters)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u64 start = ring3_clock(), now = start, yielded = start;
	bool asks = bits || waiters, crowded;
	int i, gone = GONE_LOOKS;
	u32 o;

	for (;;) {
		if ((asks || gone >= GONE_LOOKS) && try_acquire(tb, waiters)) {
			/* Others who wait awake ask again. */
			if (host_load(vcpu_pending(vcpu)) & RING3_IRQ_WAITER)
				host_andnot(vcpu_pending(vcpu), RING3_IRQ_WAITER);
			return TAKEN;
		}
		if (host_load(&tb->word) & bits)
			return NOT_NEEDED;
		o = host_load(&vcpu->owner);
		if (!o || (o & RING3_OWNER_POLLING)) {
			if (ring3_poisoned())
				return POISONED;
			gone++;
		} else {
			if (bits && is_handed(tb))
				return NOT_NEEDED;
			if (asks)
				ask_for(vcpu, RING3_IRQ_WAITER);
			gone = 0;
		}
		for (i = 0; i < ACQUIRE_TURNS; i++)
			host_pause();
		now = ring3_clock();
		asks |= now - start >= ACQUIRE_NEW_NS;
		crowded = is_crowded(cpu, now);
		if (now - start >= (crowded ? ACQUIRE_CROWDED_NS : ACQUIRE_SPIN_NS))
			return ring3_poisoned() ? POISONED : TOO_LONG;
		if (!crowded && now - yielded >= ACQUIRE_YIELD_NS) {
			yielded_briefly(cpu, now);
			yielded = ring3_clock();
		}
	}
}

/*
 * Takes the vCPU, unless the thread's word gets one of `bits` first: its call was finished, or
 * the vCPU handed to it.
 */
static enum acquired host_acquire(struct ring3_thread *tb, u32 bits)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	enum acquired got;
	long ret, waited = 0;
	u32 o, waiters = 0;

	for (;;) {
		got = acquire_awake(tb, bits, waiters);
		if (got == TAKEN && (host_load(&tb->word) & RING3_WORD_OFFERED))
			/* Of one who died before it could hand over. */
			host_andnot(&tb->word, RING3_WORD_OFFERED);
		/* If it slept, its wake-up was that of a release, which wakes one: now another has to have it. */
		if (got == NOT_NEEDED && waiters)
			ring3_host_futex_wake(&vcpu->owner, 1);
		if (got != TOO_LONG)
			return got;
		o = host_load(&vcpu->owner) | RING3_OWNER_WAITERS;
		if (!announce(vcpu, o))
			continue;
		waiters = RING3_OWNER_WAITERS;
		if (bits && (host_or(&tb->word, RING3_WORD_QUEUED) & bits)) {
			host_andnot(&tb->word, RING3_WORD_QUEUED);
			continue;
		}
		ret = ring3_host_futex_wait(&vcpu->owner, o, ACQUIRE_SLEEP_NS);
		if (bits)
			host_andnot(&tb->word, RING3_WORD_QUEUED);
		if (ret != -ETIMEDOUT)
			continue;
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
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	int spin = is_crowded(cpu, ring3_clock()) ? 0 : SPIN_WAIT;
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
			enum acquired got = host_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);

			if (got == POISONED)
				return fail(tb);
			if (got == NOT_NEEDED)
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
			host_pause();
			if (--spin % SPIN_WAIT_YIELD == 0 && !yielded_briefly(cpu, ring3_clock()))
				spin = 0;
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

/*
 * The vCPU was let go by a plain store. Somebody sleeps, and the store may have overwritten WAITERS: so once more, with a
 * locked instruction. If another has it by now, that one sees the request as it leaves: only a holder
 * takes it back. Nobody drives meanwhile; it does no harm to die here.
 */
static void wake_sleeper(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);

	while ((host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER) &&
	       host_cas(&vcpu->owner, 0, tb->tid | RING3_OWNER_WAITERS)) {
		WRITE_ONCE(vcpu->driver, 0);
		host_andnot(vcpu_pending(vcpu), RING3_IRQ_SLEEPER);
		host_xchg(&vcpu->owner, 0);
		ring3_host_futex_wake(&vcpu->owner, 1);
	}
}

/* The thread's call is over: let go and go home, unless something is left to do. */
int ring3_host_leave(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	/* The fast path comes here with the vCPU released or not. */
	u32 o = host_load(&vcpu->owner);

	if ((o & RING3_OWNER_TID) == tb->tid && vcpu->driver == (unsigned long)tb)
		release(vcpu, false);
	if (host_load(vcpu_pending(vcpu)) & (RING3_IRQ_SLEEPER | RING3_IRQ_WAITER)) {
		wake_sleeper(tb);
		give_way(vcpu);
	}
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
	u64 start, now, last, cap = READ_ONCE(ring3_region.spin_ns);
	struct pollfd fds[RING3_PORTS_MAX];
	u32 fd_bits[RING3_PORTS_MAX];
	int n_fds = fd_ports(tb, fds, fd_bits);
	bool event = false, beside_peer, yielded = false;
	struct wakes wakes;
	u32 ready, o;

	start = now = ring3_clock();
	if (is_crowded(cpu, start)) {
		cpu->gave_up = 0;
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL);
		return 1;
	}
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
	ring3_poll_disarm();
	beside_peer = ring3_poll_beside_peer();
	WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_POLL);

	take_wakes(cpu, &wakes);
	o = host_load(&vcpu->owner);
	if (!host_cas(&vcpu->owner, o, mine | (o & RING3_OWNER_WAITERS)))
		host_or(&vcpu->owner, RING3_OWNER_POLLING);
	carry_out(&wakes);
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
		last = now;
		now = ring3_clock();
		if (now >= READ_ONCE(vcpu->deadline)) {
			host_or(vcpu_pending(vcpu), RING3_IRQ_TIMER);
			break;
		}
		if ((now - last >= COMPUTES_NS && was_crowded_out(cpu, last, now)) ||
		    now - start >= cpu->spin_ns) {
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
		 * too it is better to sleep and be woken.
		 */
		if (!yielded_briefly(cpu, now)) {
			cpu->gave_up = ring3_clock();
			break;
		}
		last = now;
		now = ring3_clock();
		yielded = now - last > YIELDED_NS;
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
	enum acquired got;
	struct wakes wakes;
	u32 o;

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
		take_wakes(vcpu_cpu(vcpu), &wakes);
		WRITE_ONCE(vcpu->driver, (unsigned long)to);
		host_or(&to->word, RING3_WORD_OFFERED);
		do {
			o = host_load(&vcpu->owner);
		} while (!host_cas(&vcpu->owner, o,
				   to->tid | (o & RING3_OWNER_WAITERS)));
		give_baton(to);
		carry_out(&wakes);
		if (r3t_call(tb) == R3_CALL_DONE) {
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		return host_wait(tb, CALLED);

	case R3_PARK_YIELD:
		release(vcpu, false);
		give_way(vcpu);
		if (r3t_call(tb) == R3_CALL_DONE) {
			/* Home; what is still runnable is KEEP's to run. */
			host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
			ring3_kick(vcpu);
			r3t_call(tb) = R3_CALL_NONE;
			return 0;
		}
		got = host_acquire(tb, RING3_WORD_BATON | RING3_WORD_DONE);
		if (got == NOT_NEEDED)
			return host_wait(tb, CALLED);
		return got == TAKEN ? drive_again(tb) : fail(tb);
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
	if (!owned && host_acquire(tb, 0) != TAKEN)
		return fail(tb);
	WRITE_ONCE(vcpu->driver, (unsigned long)tb);
	r3t_call(tb) = R3_CALL_WANT;
	r3t_request(tb) |= R3_REQ_CALL;
	return 1;
}
