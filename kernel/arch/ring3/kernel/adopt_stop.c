// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_stop.c - threads that job control stops
 *
 * Theory of operation
 * -------------------
 * A stopped thread needs no successor: if it has a vCPU, it runs on until it has released that, since the rest of the
 * node waits for it. For that the adopter traces it, for a moment or all the time (adopt_trace.c).
 *
 * A busy thread takes the vCPU again within a microsecond. If the adopter only interrupted it now and then, the thread
 * would nearly always have the vCPU again, and without a CPU of the host it would execute no instruction in between. So
 * the adopter takes the vCPU itself, as a waiter. The thread is interrupted while the adopter has it: thread_runs_on().
 *
 * A thread that has released the vCPU may still have to wake others. It runs on while it says so in its block (vcpu_owe()).
 * For a thread that sleeps on the owner word the adopter makes the wake-up itself.
 *
 * A signal that stops is seen before its threads have stopped. So the owners of the vCPUs are looked at soon after it,
 * and then less and less often. A thread that is stopped while it waits awake may be handed a vCPU later. So the owners
 * are looked at for as long as any program is stopped.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/time64.h>
#include <uapi/linux/wait.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define SIGINFO_PID	4	/* of the words of the host's siginfo of a child */
#define SIGINFO_STATUS	6

static u64 stops_until, scan_at;	/* some program may be stopped until then; the next look whether any is */
static u64 gap;				/* between two looks at the owners */
static u32 taken_as;			/* tid with which the adopter took a vCPU last */

/* A signal that stops was sent, by whom and to whom ever. */
void ring3_adopt_stop_signal(void)
{
	stops_until = max(stops_until, ring3_clock() + 2 * STOPPED_SCAN_NS);
	gap = STOPPED_FIRST_NS;
}

/* Until then some thread is not traced, which could be stopped unheard. */
void ring3_adopt_stop_alone(u64 until)
{
	stops_until = max(stops_until, until);
	gap = gap ?: STOPPED_FIRST_NS;
}

/* Threads that have released a vCPU, and not yet sent the wake-ups that they had deferred. */
static struct ring3_thread *next_owing(struct ring3_thread *tb)
{
	return IS_ENABLED(CONFIG_RING3_SIM) ? NULL : vcpu_next_owing(tb);
}

static bool owes(u32 tid)
{
	struct ring3_thread *tb = NULL;

	while ((tb = next_owing(tb)))
		if (tb->tid == tid)
			return true;
	return false;
}

/* The vCPU that the thread has, and that nobody can take from it. */
static struct ring3_vcpu *vcpu_of(u32 tid)
{
	struct ring3_vcpu *vcpu;

	for_each_vcpu(vcpu)
		if (r3_owner_is(host_load(&vcpu->owner), tid))
			return vcpu;
	return NULL;
}

static void nap(void)
{
	struct __kernel_timespec ts = { .tv_nsec = STOP_NAP_NS };

	ring3_host_syscall(__NR_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
}

static void wake_sleeper(struct ring3_vcpu *vcpu)
{
	host_add(&vcpu->wakes, 1);
	ring3_host_futex_wake(&vcpu->owner, 1);
}

enum stop { RUNS, AT_SIGNAL_OR_CLONE, AT_JOB_CONTROL };

/* Has the thread stopped, and see_stops() has yet to hear of it? */
static enum stop stop_of(u32 tid)
{
	const int options = WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL;
	u32 info[32];			/* the host's siginfo */

	info[SIGINFO_PID] = 0;
	if (ring3_host_syscall(__NR_waitid, P_PID, tid, (long)info, options, 0, 0))
		return AT_JOB_CONTROL;	/* it is gone */
	if (!info[SIGINFO_PID])
		return RUNS;
	return info[SIGINFO_STATUS] >> 8 == PTRACE_EVENT_STOP ? AT_JOB_CONTROL : AT_SIGNAL_OR_CLONE;
}

static bool has_stopped(u32 tid)
{
	return stop_of(tid) != RUNS;
}

/*
 * The owner runs. The adopter waits for the vCPU as any thread does: awake, then asleep on the owner word. Not for a poller's, which
 * any thread may take. True: it has the vCPU. False: it has not, and has waited, or the thread has stopped.
 */
static bool take(struct ring3_vcpu *vcpu, u32 tid)
{
	u64 start = ring3_clock(), awake = start, now = start;
	u32 waiters = 0, o;

	if (IS_ENABLED(CONFIG_RING3_SIM)) {
		nap();
		return false;
	}
	taken_as = ring3_adopter_thread.tid;
	while (now - start < STOP_TAKE_NS) {
		if (r3_freeze(&vcpu->owner, taken_as, waiters, &o)) {
			WRITE_ONCE(vcpu->driver, 0);	/* nobody drives: it does no harm to die here */
			return true;
		}
		if (o & RING3_OWNER_POLLING) {
			nap();
			break;
		}
		if (has_stopped(tid))
			break;
		WRITE_ONCE(vcpu_cpu(vcpu)->waits, 1);
		host_pause();
		now = ring3_clock();
		if (now - awake < STOP_SPIN_NS)
			continue;
		waiters = RING3_OWNER_WAITERS;
		if (vcpu_announce(vcpu, o | waiters))
			ring3_host_futex_wait(&vcpu->owner, o | waiters, STOP_SLEEP_NS);
		awake = now = ring3_clock();
	}
	/* It may have got the wake-up of another waiter. */
	if (waiters)
		wake_sleeper(vcpu);
	taken_as = 0;
	return false;
}

static void give(struct ring3_vcpu *vcpu)
{
	bool sleeps = host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER;

	if (r3_release(&vcpu->owner) || sleeps)
		wake_sleeper(vcpu);
	taken_as = 0;
	/* What was raised or became runnable meanwhile has waited for this thread, which does not drive. */
	host_store(&vcpu_cpu(vcpu)->drive_wanted, 1);
	ring3_kick(vcpu);
}

/* An adopter before this one may have died with a vCPU that it had taken. */
void ring3_adopt_stop_start(void)
{
	struct ring3_vcpu *vcpu;
	u32 o;

	for_each_vcpu(vcpu) {
		o = host_load(&vcpu->owner);
		if (taken_as && r3_owner_is(o, taken_as) && r3_reclaim(&vcpu->owner, o))
			wake_sleeper(vcpu);
	}
	ring3_adopt_stop_signal();	/* a program may be stopped already */
}

/*
 * The traced thread has stopped, and the node waits for it: it runs until it has released its vCPU. False: it has none.
 *
 * PTRACE_INTERRUPT of a thread that job control has stopped by now would stop it once more after the next PTRACE_CONT,
 * before it executes one instruction. One that stands at a signal or a clone() needs it: job control stops nobody twice.
 */
static bool thread_runs_on(u32 tid, int sig)
{
	struct ring3_vcpu *vcpu = vcpu_of(tid);
	bool taken = false;
	u64 start;

	if (!vcpu && !owes(tid))
		return false;
	ring3_adopt_ptrace(PTRACE_CONT, tid, sig);
	if (vcpu)
		taken = take(vcpu, tid);
	else
		nap();
	start = ring3_clock();
	if (stop_of(tid) != AT_JOB_CONTROL)
		ring3_adopt_ptrace(PTRACE_INTERRUPT, tid, 0);
	if (taken) {
		while (!has_stopped(tid) && ring3_clock() - start < STOP_AWAIT_NS)
			host_pause();
		give(vcpu);
	}
	return true;
}

/* Job control has stopped a thread that is traced all the time. */
void ring3_adopt_stays(u32 tid)
{
	ring3_adopt_stop_signal();
	if (!thread_runs_on(tid, 0))
		ring3_adopt_ptrace(PTRACE_LISTEN, tid, 0);
}

/* A thread that is traced for a moment has stopped. A signal that came meanwhile is its own. */
void ring3_adopt_leaves(u32 tid, int sig)
{
	if (!thread_runs_on(tid, sig))
		ring3_adopt_ptrace(PTRACE_DETACH, tid, sig);
}

static bool is_debuggers(const struct ring3_proc *proc)
{
	return host_load(&proc->place) & RING3_PLACE_FREE;
}

static bool any_is_stopped(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	for (proc = ring3_region.procs; proc < end; proc++)
		if (ring3_adopt_is_program(proc) && !is_debuggers(proc) &&
		    ring3_adopt_process_stopped(proc->pid))
			return true;
	return false;
}

/* The node waits for the thread. */
static void interrupt_if_stopped(struct ring3_proc *proc, u32 tid)
{
	if (!proc || is_debuggers(proc) || !ring3_adopt_is_stopped(proc->pid, tid))
		return;
	/* To seize a stopped thread makes it tell of its stop, before the call returns. Refused if it is traced already. */
	ring3_adopt_seize(tid);
	/* Traced already; or seized, but continued just before that: it is let go when it stops. */
	if (!has_stopped(tid))
		ring3_adopt_ptrace(PTRACE_INTERRUPT, tid, 0);
}

/* Is a vCPU in the hands of a stopped thread? Returns when to look again. */
u64 ring3_adopt_see_holders(void)
{
	u64 now = ring3_clock();
	struct ring3_thread *tb = NULL;
	struct ring3_vcpu *vcpu;
	u32 tid;

	if (now >= stops_until)
		return U64_MAX;
	for_each_vcpu(vcpu) {
		tid = host_load(&vcpu->owner) & RING3_OWNER_TID;
		if (tid && vcpu_of(tid))
			interrupt_if_stopped(ring3_adopt_holds(tid), tid);
		/* The thread that released the vCPU may be stopped before it wakes the next. */
		else if (!tid && (host_load(vcpu_pending(vcpu)) & RING3_IRQ_SLEEPER))
			wake_sleeper(vcpu);
	}
	while ((tb = next_owing(tb)))
		interrupt_if_stopped((struct ring3_proc *)tb->proc, tb->tid);
	if (now >= scan_at) {
		scan_at = now + STOPPED_SCAN_NS;
		if (any_is_stopped())
			stops_until = max(stops_until, now + 2 * STOPPED_SCAN_NS);
	}
	now += gap;
	gap = min(2 * gap, STOPPED_LOOK_NS);
	return now;
}
