// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_trace.c - the registers of threads that die, from the host's ptrace()
 *
 * Theory of operation
 * -------------------
 * An ordinary user may not load a program into the host's kernel (adopt_bpf.c), but may trace its own processes. So the
 * adopter seizes each program of the node when it joins, which does not stop it. PTRACE_O_TRACEEXIT: a thread that is
 * killed stops once more on its way out, and its registers can be read. Threads and children of a traced thread are
 * traced from their first instruction on (PTRACE_O_TRACECLONE and the like). A program waits as it joins until it is
 * traced (gate/process/trace.c: trace_await()). The keeper says when a process has come.
 *
 * Each signal of a traced thread passes through here; so a thread that gets many is let go for a while.
 *
 * A thread has one tracer. A debugger that wants the place says so: a program of the node in its own entry of procs[]
 * (ring3_proc.wants), any other by the keeper (ring3_proc.place). All threads of the process are let go then, and are
 * taken back when no debugger wants the place any more. An attempt to take a thread that a debugger has is refused,
 * and does no harm.
 *
 * Nothing here waits for a tracee: each stop is served as it is reported. All that stops is sent on at once, but for
 * what job control stops (adopt_stop.c). PTRACE_SEIZE is the one call that the host makes wait: for a process that
 * executes a program, which itself waits for its other threads, which may be our tracees that stand at their end. So
 * a stop interrupts the call, and is served first (ring3_adopt_seize()).
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/signal_types.h>
#include <uapi/linux/wait.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define HOST_GETREGS	12
#define BUSY_MAX	64	/* places where signals are counted, two threads in each */
#define REGS_ALL	27	/* words of the host's struct user_regs_struct */
#define STOPS_MAX	64	/* served before anything else is seen to */

long ring3_seize(u32 tid, unsigned long options, u32 *called);
extern char ring3_seized[], ring3_seize_not[];

static bool traces_all;			/* the node's threads; else only what job control stops */
static struct busy { u32 tid, count; u64 since, until; } busy[BUSY_MAX][2];
static u8 wanted[RING3_PROCS_MAX / 8];	/* the places that programs want, one bit for each process */
static u32 n_wanted;
static bool gives;			/* threads are being let go for a debugger */
static u64 look_at = U64_MAX;		/* time for the next look at processes that debuggers want, */
static u64 later_at = U64_MAX;		/* and at threads that are left alone */
static u32 left_alone;			/* so many times threads were let go for a while */
static u32 called, timed_out;		/* by a signal, since they were last cleared */

long ring3_adopt_ptrace(long request, u32 tid, unsigned long data)
{
	return ring3_host_syscall(__NR_ptrace, request, tid, 0, data, 0, 0);
}

static void look_in(u64 ns)
{
	look_at = min(look_at, ring3_clock() + ns);
}

static void later_in(u64 ns)
{
	later_at = min(later_at, ring3_clock() + ns);
}

bool ring3_adopt_is_program(struct ring3_proc *proc)
{
	return host_load(&proc->state) == RING3_PROC_LIVE && proc->pid > 0 && proc->pid != ring3_region.keeper_pid;
}

/* The process of which that is a thread; NULL: it is gone. */
static struct ring3_proc *proc_of(u32 tid)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	/* A process of another uid may not be signalled. */
	for (proc = ring3_region.procs; proc < end; proc++)
		if (ring3_adopt_is_program(proc) &&
		    ring3_host_syscall(__NR_tgkill, proc->pid, tid, 0, 0, 0, 0) != -ESRCH)
			return proc;
	return NULL;
}

/* ---- signals and stops ---- */

/* Of two threads of one place each has its count. A third takes that of the one whose signals began earlier. */
static struct busy *busy_of(u32 tid)
{
	struct busy *two = busy[tid % BUSY_MAX];

	if (two[0].tid == tid || two[1].tid == tid)
		return two + (two[1].tid == tid);
	return two + (two[1].since < two[0].since);
}

static bool gets_many(u32 tid)
{
	struct busy *it = busy_of(tid);
	u64 now = ring3_clock();

	/* Other threads of the same place are left alone. */
	if (it->tid != tid && now < it->until)
		return false;
	if (it->tid != tid || now - it->since > SIGNALS_NS)
		*it = (struct busy){ .tid = tid, .since = now };
	if (++it->count <= SIGNALS_MANY)
		return false;
	it->until = now + SIGNALS_PAUSE_NS;
	return true;
}

static bool is_left_alone(u32 tid)
{
	struct busy *it = busy_of(tid);

	return it->tid == tid && ring3_clock() < it->until;
}

static void leave_alone(u32 tid, int sig)
{
	struct ring3_proc *proc = proc_of(tid);

	ring3_adopt_ptrace(PTRACE_DETACH, tid, sig);
	if (proc)
		host_store(&proc->traced, RING3_TRACED_LATER);
	left_alone++;
	later_in(SIGNALS_PAUSE_NS);
	ring3_adopt_stop_alone(ring3_clock() + SIGNALS_PAUSE_NS);
}

/* A debugger wants the place. */
static bool is_wanted(const struct ring3_proc *proc)
{
	u32 n = proc - ring3_region.procs;

	return (host_load(&proc->place) & RING3_PLACE_WANTED) || wanted[n / 8] & 1 << n % 8;
}

static bool is_to_go(u32 tid)
{
	struct ring3_proc *proc = gives ? proc_of(tid) : NULL;

	return proc && is_wanted(proc);
}

/* The thread stands at its end. */
static void ends(u32 tid)
{
	struct ring3_death death = { .tid = tid };
	struct ring3_proc *proc = ring3_adopt_holds(tid);
	u64 regs[REGS_ALL];

	if (!proc || ring3_adopt_ptrace(HOST_GETREGS, tid, (unsigned long)regs)) {
		ring3_adopt_let_go(tid);
		return;
	}
	death.pid = proc->pid;
	memcpy(&death.regs, regs, sizeof(death.regs));
	ring3_adopt(&death, FATE_ENDS);
}

void ring3_adopt_let_go(u32 tid)
{
	ring3_adopt_ptrace(PTRACE_DETACH, tid, 0);
}

static void stops(u32 tid, int status)
{
	int sig = status >> 8 & 0xff, event = status >> 16;

	if (event == PTRACE_EVENT_EXIT) {
		ends(tid);
	} else if (!traces_all) {
		ring3_adopt_leaves(tid, event ? 0 : sig);
	} else if (is_to_go(tid)) {
		ring3_adopt_ptrace(PTRACE_DETACH, tid, event ? 0 : sig);
		look_in(0);
	} else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		ring3_adopt_stays(tid);
	} else if (!event && gets_many(tid)) {
		leave_alone(tid, sig);
	} else {
		ring3_adopt_ptrace(PTRACE_CONT, tid, event ? 0 : sig);
	}
}

/* True: there is more. */
static bool see_stops(void)
{
	int status, n;
	long tid;

	for (n = 0; n < STOPS_MAX; n++) {
		tid = ring3_host_syscall(__NR_wait4, -1, (long)&status, WNOHANG | __WALL, 0, 0, 0);
		if (tid <= 0)
			return false;
		if ((status & 0xff) == 0x7f)
			stops(tid, status);
	}
	return true;
}

/* ---- PTRACE_SEIZE ---- */

/* A signal has come at `ip'. Returns where to continue: not in the call that it interrupts, nor just before that. */
unsigned long ring3_adopt_called(int sig, unsigned long ip)
{
	host_store(&called, 1);
	if (sig == SIGALRM)
		host_store(&timed_out, 1);
	if (ip >= (unsigned long)ring3_seize && ip < (unsigned long)ring3_seized)
		return (unsigned long)ring3_seize_not;
	return ip;
}

static void let_signals_in(bool in)
{
	u64 mask = 1UL << (SIGCHLD - 1) | 1UL << (SIGALRM - 1);

	ring3_host_syscall(__NR_rt_sigprocmask, in ? SIG_UNBLOCK : SIG_BLOCK, (long)&mask, 0, sizeof(mask), 0, 0);
}

static void set_timer(long us)
{
	struct { long interval_s, interval_us, s, us; } it = { .us = us };

	ring3_host_syscall(__NR_setitimer, 0 /* ITIMER_REAL */, (long)&it, 0, 0, 0, 0);
}

/* -EINTR: its process executes a program, and takes its time. */
long ring3_adopt_seize(u32 tid)
{
	const unsigned long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;
	long ret;

	let_signals_in(true);
	host_store(&timed_out, 0);
	set_timer(SEIZE_US);
	do {
		host_store(&called, 0);
		while (see_stops() && !host_load(&timed_out))
			;
		ret = ring3_seize(tid, traces_all ? options : 0, &called);
	} while (ret == -EINTR && !host_load(&timed_out));
	set_timer(0);
	let_signals_in(false);
	return ret;
}

/* ---- processes ---- */

struct scan {
	bool some;		/* seized now */
	bool refused, later;
};

static bool is_ours(u32 pid, u32 tid)
{
	return ring3_adopt_tracer(pid, tid) == ring3_adopter_proc.pid;
}

static void seize(u32 pid, u32 tid, void *arg)
{
	struct scan *scan = arg;
	long ret;

	/* A debugger is about to attach to one thread after the other. */
	if (scan->refused)
		return;
	if (is_left_alone(tid)) {
		later_in(busy_of(tid)->until - ring3_clock());
		scan->later = true;
		return;
	}
	ret = ring3_adopt_seize(tid);
	if (ret == -EINTR) {
		later_in(LOOK_AGAIN_NS);
		scan->later = true;
	}
	scan->some |= !ret;
	/* The host says EPERM of a thread that is traced already, too, and of one that is about to end. */
	scan->refused |= ret == -EPERM && !is_ours(pid, tid) && ring3_adopt_goes_on(pid, tid);
}

/* In the end there is no thread that is not traced, and could make another such. */
static void take(struct ring3_proc *proc, bool later)
{
	u32 was = host_load(&proc->traced), now = RING3_TRACED_ALL, alone = left_alone;
	struct scan scan = {};

	if (was == RING3_TRACED_ALL || (was == RING3_TRACED_LATER && !later))
		return;
	/* A child of a traced process is traced already. */
	if (was || !is_ours(proc->pid, proc->pid)) {
		do {
			scan = (struct scan) {};
			ring3_adopt_each_thread(proc->pid, seize, &scan);
		} while (scan.some);
	}
	if (scan.later || alone != left_alone)
		now = RING3_TRACED_LATER;
	else if (scan.refused)
		now = RING3_TRACED_REFUSED;
	host_cas(&proc->traced, was, now);
	ring3_host_futex_wake(&proc->traced, INT_MAX);
}

/* A first thread that has ended before the others stays the adopter's, and stops no more: nothing is to be let go. */
static void interrupt(u32 pid, u32 tid, void *ours)
{
	if (!ring3_adopt_goes_on(pid, tid))
		return;
	*(bool *)ours |= !ring3_adopt_ptrace(PTRACE_INTERRUPT, tid, 0);
}

/* A debugger wants the process. Its threads can be let go where they stop, which takes a moment: stops(). */
static void give_place(struct ring3_proc *proc)
{
	bool ours = false;

	look_in(PLACE_LOOK_NS);
	if (host_load(&proc->place) & RING3_PLACE_FREE)
		return;
	ring3_adopt_each_thread(proc->pid, interrupt, &ours);
	if (ours) {
		gives = true;
		look_in(GIVE_LOOK_NS);
		/* Some threads may have gone already when the debugger gives up: the process is to be looked at again then. */
		host_store(&proc->traced, RING3_TRACED_LATER);
		later_in(LOOK_AGAIN_NS);
		return;
	}
	host_store(&proc->traced, 0);
	host_or(&proc->place, RING3_PLACE_FREE);
	ring3_host_futex_wake(&proc->place, INT_MAX);
}

static void see_who_wants(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);
	u32 n;

	if (n_wanted)
		memset(wanted, 0, sizeof(wanted));
	n_wanted = 0;
	for (proc = ring3_region.procs; proc < end; proc++) {
		n = host_load(&proc->wants);
		if (!n || n > RING3_PROCS_MAX || !ring3_adopt_is_program(proc))
			continue;
		n--;
		wanted[n / 8] |= 1 << n % 8;
		n_wanted++;
	}
}

/* No debugger wants the place any more. One that has just come has seen FREE, or is seen here. */
static bool take_place_back(struct ring3_proc *proc)
{
	host_andnot(&proc->place, RING3_PLACE_FREE);
	see_who_wants();
	if (is_wanted(proc)) {
		host_or(&proc->place, RING3_PLACE_FREE);
		return false;
	}
	return true;
}

/* Processes have come, or a debugger wants to come or has gone. */
static void look(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);
	bool later = ring3_clock() >= later_at;

	look_at = U64_MAX;
	if (later)
		later_at = U64_MAX;
	gives = false;
	see_who_wants();
	for (proc = ring3_region.procs; proc < end; proc++) {
		if (!ring3_adopt_is_program(proc))
			continue;
		if (is_wanted(proc))
			give_place(proc);
		else if (!(host_load(&proc->place) & RING3_PLACE_FREE) || take_place_back(proc))
			take(proc, later);
	}
}

/* Sees to all that has happened. Returns when to come again, if nothing happens before. */
u64 ring3_adopt_trace(bool has_come)
{
	bool more = see_stops();
	u64 at;

	if (traces_all && (has_come || ring3_clock() >= min(look_at, later_at)))
		look();
	at = ring3_adopt_see_holders();
	return more ? 0 : min3(at, look_at, later_at);
}

void ring3_adopt_trace_start(bool all)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	traces_all = all;
	/* The adopter before this one traced these processes. It is gone, so no process traces them. */
	for (proc = ring3_region.procs; proc < end; proc++)
		host_store(&proc->traced, 0);
}
