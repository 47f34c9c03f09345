// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_stop.c - threads that job control stops
 *
 * A stopped thread needs no successor: if it has a vCPU, it runs on until it has let go of that, since the rest of the
 * node waits for it. For that the adopter traces it, for a moment or all the time (adopt_trace.c). It is stopped again
 * and again until it happens to have no vCPU.
 *
 * A thread that is stopped while it waits awake may be handed a vCPU later. So for as long as any program is stopped,
 * the owners of the vCPUs are looked at every few milliseconds.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/ptrace.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

static u64 stops_until, scan_at;	/* some program may be stopped until then; the next look whether any is */

/* A signal that stops was sent, by whom and to whom ever. */
void ring3_adopt_stop_signal(void)
{
	stops_until = ring3_clock() + 2 * STOPPED_SCAN_NS;
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

/* The traced thread has stopped, and has a vCPU: it runs for a moment. False: it has none. */
static bool runs_on(u32 tid, int sig)
{
	struct __kernel_timespec ts = { .tv_nsec = STOP_NAP_NS };

	if (!holds_up(tid))
		return false;
	ring3_adopt_ptrace(PTRACE_CONT, tid, sig);
	ring3_host_syscall(__NR_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
	ring3_adopt_ptrace(PTRACE_INTERRUPT, tid, 0);
	return true;
}

/* Job control has stopped a thread that is traced all the time. */
void ring3_adopt_stays(u32 tid)
{
	ring3_adopt_stop_signal();
	if (!runs_on(tid, 0))
		ring3_adopt_ptrace(PTRACE_LISTEN, tid, 0);
}

/* A thread that is traced for a moment has stopped. A signal that came meanwhile is its own. */
void ring3_adopt_leaves(u32 tid, int sig)
{
	if (!runs_on(tid, sig))
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

/* Is a vCPU in the hands of a stopped thread? Returns when to look again. */
u64 ring3_adopt_see_holders(void)
{
	u64 now = ring3_clock();
	struct ring3_vcpu *vcpu;
	struct ring3_proc *proc;
	u32 tid;

	if (now >= stops_until)
		return U64_MAX;
	for_each_vcpu(vcpu) {
		tid = host_load(&vcpu->owner) & RING3_OWNER_TID;
		proc = tid && holds_up(tid) ? ring3_adopt_holds(tid) : NULL;
		if (!proc || is_debuggers(proc) || !ring3_adopt_is_stopped(proc->pid, tid))
			continue;
		/* Refused if it is traced already. */
		ring3_adopt_seize(tid);
		ring3_adopt_ptrace(PTRACE_INTERRUPT, tid, 0);
	}
	if (now >= scan_at) {
		scan_at = now + STOPPED_SCAN_NS;
		if (any_is_stopped())
			stops_until = now + 2 * STOPPED_SCAN_NS;
	}
	return now + STOPPED_LOOK_NS;
}
