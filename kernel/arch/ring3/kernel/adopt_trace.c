// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_trace.c - the registers of those who die, from the host's ptrace()
 *
 * Theory of operation
 * -------------------
 * Who may not load a program into the host's kernel (adopt_bpf.c) may still trace its own processes.
 * Each thread of the node is seized (it is not stopped by that), with PTRACE_O_TRACEEXIT: one that is
 * killed stops once more on its way out, and its registers can be read. What that costs: each signal of the
 * thread's goes through here; so a thread that gets many is let go for a while. The keeper says when there is
 * something to look at: a process or a thread has come.
 *
 * A thread has one tracer. A debugger that wants the place says so in the process's entry (ring3_proc.place): a program
 * of the node does by its gate, any other by the keeper. All threads of the process are let go then, and are taken back
 * when nobody wants the place any more. An attempt to take a thread that a debugger has is refused, and does no harm.
 *
 * All that stops is sent on at once, but for what job control stops: it stays so, unless it has a vCPU. Then it runs on
 * until it has let go of that, since the rest of the node waits for it. It may also be handed one later.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/dirent.h>
#include <linux/mman.h>
#include <linux/ptrace.h>
#include <uapi/linux/futex.h>
#include <uapi/linux/wait.h>
#include <uapi/linux/fcntl.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define HOST_GETREGS		12
#define BUSY_MAX		64	/* threads whose signals are counted */
#define STOPPED_MAX		64	/* threads that job control has stopped, of which is known that they may be handed a vCPU */
#define REGS_ALL		27	/* words of the host's struct user_regs_struct */
#define TIDS			(4UL << 20)	/* the host's numbers are smaller: PID_MAX_LIMIT */

static struct busy { u32 tid, count; u64 since, until; } busy[BUSY_MAX];
static u32 stopped[STOPPED_MAX], n_stopped;
static bool gives;			/* threads are being let go for a debugger */
static u64 look_at = U64_MAX;		/* time for the next look at all processes */

static long trace(long request, u32 tid, unsigned long addr, unsigned long data)
{
	return ring3_host_syscall(__NR_ptrace, request, tid, addr, data, 0, 0);
}

static void nap(u64 ns)
{
	struct __kernel_timespec ts = { .tv_nsec = ns };

	ring3_host_syscall(__NR_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
}

static void look_in(u64 ns)
{
	look_at = min(look_at, ring3_clock() + ns);
}

/* One bit for each thread that is traced: those need not be asked for again. */
static u8 *ours(u32 tid)
{
	return (u8 *)adopt_memory() + ADOPT_OURS_AT + tid % TIDS / 8;
}

static bool is_ours(u32 tid)
{
	return *ours(tid) & 1 << tid % 8;
}

static void set_ours(u32 tid, bool are)
{
	*ours(tid) = are ? *ours(tid) | 1 << tid % 8 : *ours(tid) & ~(1 << tid % 8);
}

/* ---- signals and stops ---- */

static struct busy *busy_of(u32 tid)
{
	return &busy[tid % BUSY_MAX];
}

static bool gets_many(u32 tid)
{
	struct busy *it = busy_of(tid);
	u64 now = ring3_clock();

	if (it->tid != tid || now - it->since > SIGNALS_NS)
		*it = (struct busy){ .tid = tid, .since = now };
	if (++it->count <= SIGNALS_MANY)
		return false;
	it->until = now + SIGNALS_PAUSE_NS;
	return true;
}

/* The thread is let go at its exit stop, where the host does not call it exiting yet: it is not to be seized again. */
static void ends(u32 tid)
{
	*busy_of(tid) = (struct busy){ .tid = tid, .until = ring3_clock() + SIGNALS_PAUSE_NS };
}

static bool is_left_alone(u32 tid)
{
	struct busy *it = busy_of(tid);

	return it->tid == tid && ring3_clock() < it->until;
}

static void stopped_add(u32 tid)
{
	if (n_stopped < STOPPED_MAX)
		stopped[n_stopped++] = tid;
}

static void stopped_remove(u32 tid)
{
	u32 i;

	for (i = 0; i < n_stopped; i++)
		if (stopped[i] == tid)
			stopped[i--] = stopped[--n_stopped];
}

/* It has a vCPU, and nobody can take that from it. */
static bool holds_up(u32 tid)
{
	struct ring3_vcpu *vcpu;
	u32 o;

	for_each_vcpu(vcpu) {
		o = host_load(&vcpu->owner);
		if (r3_owner_is(o, tid) && !(o & RING3_OWNER_POLLING))
			return true;
	}
	return false;
}

/* Job control has stopped the thread: so it stays, but not in the middle of kernel code. */
static void stays(u32 tid)
{
	if (!holds_up(tid)) {
		stopped_add(tid);
		trace(PTRACE_LISTEN, tid, 0, 0);
		return;
	}
	/* A busy one has it most of the time: it is stopped again and again, until it happens to have none. */
	trace(PTRACE_CONT, tid, 0, 0);
	nap(STOP_NAP_NS);
	trace(PTRACE_INTERRUPT, tid, 0, 0);
}

/* ---- who is traced ---- */

struct scan {
	u32 seen, done, refused;
	bool later;		/* some are left alone for now */
};

/* Makes the request for each thread of the process. */
static struct scan threads_of(u32 pid, long request)
{
	struct scan scan = {};
	struct linux_dirent64 *entry;
	char path[32], buffer[1024];
	long fd, n, at, ret;

	ring3_put_tasks(path, pid);
	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY | O_DIRECTORY, 0, 0, 0, 0);
	if (fd < 0)
		return scan;
	while ((n = ring3_host_syscall(__NR_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (at = 0; at < n; at += entry->d_reclen) {
			const char *name;
			u32 tid = 0;

			entry = (void *)buffer + at;
			for (name = entry->d_name; *name >= '0' && *name <= '9'; name++)
				tid = 10 * tid + *name - '0';
			if (!tid)
				continue;
			scan.seen++;
			if (request == PTRACE_SEIZE && is_ours(tid))
				continue;
			if (request == PTRACE_SEIZE && is_left_alone(tid)) {
				scan.later = true;
				continue;
			}
			/* An exiting thread that is seized stays a zombie until the adopter has waited for it. */
			if (request == PTRACE_SEIZE && !ring3_adopt_goes_on(pid, tid))
				continue;
			ret = trace(request, tid, 0, request == PTRACE_SEIZE ? PTRACE_O_TRACEEXIT : 0);
			if (!ret && request == PTRACE_SEIZE)
				set_ours(tid, true);
			scan.done += !ret;
			/* The host says EPERM of a thread that has ended meanwhile, too. */
			scan.refused += ret == -EPERM && ring3_adopt_goes_on(pid, tid);
		}
	}
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
	return scan;
}

/*
 * The thread block of a new thread is there before the thread is. So a process is looked at once more, some time after
 * its last new block.
 */
static void take_threads(struct ring3_proc *proc)
{
	u32 made = READ_ONCE(proc->made), was = host_load(&proc->traced), now;
	struct scan scan;

	if (was == made)
		return;
	scan = threads_of(proc->pid, PTRACE_SEIZE);
	if (scan.refused)
		now = RING3_TRACED_REFUSED;
	else
		now = was == (made | RING3_TRACED_AGAIN) ? made : made | RING3_TRACED_AGAIN;
	if (scan.later) {
		now = made | RING3_TRACED_AGAIN;
		look_in(SIGNALS_PAUSE_NS);
	} else if (now & RING3_TRACED_AGAIN) {
		look_in(LOOK_AGAIN_NS);
	}
	/* Who zeroes it meanwhile wants another look. */
	host_cas(&proc->traced, was, now);
}

static bool is_wanted(const struct ring3_proc *proc)
{
	return host_load(&proc->place) & RING3_PLACE_WANTED;
}

/* A debugger wants the process. Threads can be let go where they stop, which takes a moment. */
static void give_place(struct ring3_proc *proc)
{
	u32 place = host_load(&proc->place);

	if (place & RING3_PLACE_FREE)
		return;
	if (threads_of(proc->pid, PTRACE_INTERRUPT).done) {
		gives = true;
		return;
	}
	host_store(&proc->traced, 0);
	/* Another debugger may have come or gone. */
	while ((place & RING3_PLACE_WANTED) && !host_cas(&proc->place, place, place | RING3_PLACE_FREE))
		place = host_load(&proc->place);
	ring3_host_futex_wake(&proc->place, INT_MAX);
}

static bool is_program(const struct ring3_proc *proc)
{
	return host_load(&proc->state) == RING3_PROC_LIVE && proc->pid > 0 && proc->pid != ring3_region.keeper_pid;
}

/* Processes or threads have come, or a debugger wants to come or has gone. */
void ring3_adopt_trace_look(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	look_at = U64_MAX;
	gives = false;
	for (proc = ring3_region.procs; proc < end; proc++) {
		if (!is_program(proc))
			continue;
		if (is_wanted(proc))
			give_place(proc);
		else
			take_threads(proc);
	}
}

/* A debugger wants the thread's process. */
static bool is_to_go(u32 tid)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	if (!gives)
		return false;
	for (proc = ring3_region.procs; proc < end; proc++)
		if (is_program(proc) && is_wanted(proc) &&
		    !ring3_host_syscall(__NR_tgkill, proc->pid, tid, 0, 0, 0, 0))
			return true;
	return false;
}

/* ---- what stops ---- */

static void let_go(u32 tid, int sig)
{
	set_ours(tid, false);
	trace(PTRACE_DETACH, tid, 0, sig);
}

/* It stands at its end, and is traced. */
static void stands(struct ring3_thread *me, u32 tid, enum ring3_fate fate)
{
	struct ring3_death death = { .tid = tid };
	u64 regs[REGS_ALL];

	if (ring3_adopt_holds(tid, &death.pid) && !trace(HOST_GETREGS, tid, 0, (long)regs)) {
		memcpy(&death.regs, regs, sizeof(death.regs));
		ring3_adopt(me, &death, fate);
	} else {
		ring3_adopt_let_go(&death, fate);
	}
}

void ring3_adopt_let_go(struct ring3_death *death, enum ring3_fate fate)
{
	if (fate == FATE_GONE)
		return;
	ends(death->tid);
	let_go(death->tid, 0);
}

static void stops(struct ring3_thread *me, u32 tid, int status)
{
	int sig = status >> 8 & 0xff, event = status >> 16;

	if (event == PTRACE_EVENT_EXIT) {
		stands(me, tid, FATE_ENDS);
	} else if (is_to_go(tid)) {
		let_go(tid, event ? 0 : sig);
	} else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP) {
		stays(tid);
	} else if (event) {
		trace(PTRACE_CONT, tid, 0, 0);
	} else if (gets_many(tid)) {
		let_go(tid, sig);
		look_in(SIGNALS_PAUSE_NS);
	} else {
		trace(PTRACE_CONT, tid, 0, sig);
	}
}

static void see_stops(struct ring3_thread *me)
{
	int status;
	long tid;

	while ((tid = ring3_host_syscall(__NR_wait4, -1, (long)&status, WNOHANG | __WALL, 0, 0, 0)) > 0) {
		stopped_remove(tid);
		if ((status & 0xff) == 0x7f)
			stops(me, tid, status);
		else
			set_ours(tid, false);
	}
}

/* One that was stopped while it waited may have been handed a vCPU: see stays(). */
static void see_stopped(void)
{
	u32 i;

	for (i = 0; i < n_stopped; i++)
		if (holds_up(stopped[i]))
			trace(PTRACE_INTERRUPT, stopped[i], 0, 0);
}

/* Sees to all that has happened. Returns when to come again, if nothing happens before. */
u64 ring3_adopt_trace(struct ring3_thread *me, bool look)
{
	see_stops(me);
	if (look || ring3_clock() >= look_at)
		ring3_adopt_trace_look();
	while (gives) {
		nap(GIVE_NAP_NS);
		see_stops(me);
		ring3_adopt_trace_look();
	}
	see_stopped();
	return n_stopped ? min(look_at, ring3_clock() + STOPPED_LOOK_NS) : look_at;
}

long ring3_adopt_trace_start(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);
	long at = (long)ours(0);
	long p = ring3_host_syscall(__NR_mmap, at, TIDS / 8, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	/* The adopter before this one traced these processes. It is gone, so no process traces them. */
	for (proc = ring3_region.procs; proc < end; proc++)
		host_store(&proc->traced, 0);
	return p < 0 ? p : 0;
}

/* ---- stops, where the programs are not traced ---- */

static u64 stops_until, scan_at;	/* some program may be stopped until then; the next look whether any is */

/* A signal that stops was sent, by whom and to whom ever. */
void ring3_adopt_stop_signal(void)
{
	stops_until = ring3_clock() + 2 * STOPPED_SCAN_NS;
}

/* The thread is stopped and has a vCPU. It is traced for as long as it takes to have it let go of that: see stays(). */
static void let_leave(u32 tid)
{
	int status, sig;

	if (trace(PTRACE_SEIZE, tid, 0, 0))
		return;
	trace(PTRACE_INTERRUPT, tid, 0, 0);
	/* It stops, or dies. */
	while (ring3_host_syscall(__NR_wait4, tid, (long)&status, __WALL, 0, 0, 0) == tid && (status & 0xff) == 0x7f) {
		/* A signal that came meanwhile is its own. */
		sig = status >> 16 ? 0 : status >> 8 & 0xff;
		if (!holds_up(tid)) {
			trace(PTRACE_DETACH, tid, 0, sig);
			return;
		}
		trace(PTRACE_CONT, tid, 0, sig);
		nap(STOP_NAP_NS);
		trace(PTRACE_INTERRUPT, tid, 0, 0);
	}
}

static bool any_is_stopped(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);

	for (proc = ring3_region.procs; proc < end; proc++)
		if (is_program(proc) && ring3_adopt_is_stopped(proc->pid, proc->pid))
			return true;
	return false;
}

/* Is a vCPU in the hands of a stopped thread? Returns when to look again. */
u64 ring3_adopt_see_holders(void)
{
	u64 now = ring3_clock();
	struct ring3_vcpu *vcpu;
	u32 tid, pid;

	if (now >= stops_until)
		return U64_MAX;
	for_each_vcpu(vcpu) {
		tid = host_load(&vcpu->owner) & RING3_OWNER_TID;
		if (tid && holds_up(tid) && ring3_adopt_holds(tid, &pid) && ring3_adopt_is_stopped(pid, tid))
			let_leave(tid);
	}
	if (now >= scan_at) {
		scan_at = now + STOPPED_SCAN_NS;
		if (any_is_stopped())
			stops_until = now + 2 * STOPPED_SCAN_NS;
	}
	return now + STOPPED_LOOK_NS;
}
