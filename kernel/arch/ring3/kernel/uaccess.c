// SPDX-License-Identifier: GPL-2.0
/* uaccess.c - access to a program's memory, and faults in it */
#include <linux/export.h>
#include <linux/extable.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/stat.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <asm/sections.h>
#include "../turn/turn.h"
#include "../vcpu/tuning.h"
#include "../vcpu/vcpu.h"
#include "blocks.h"

void __noreturn ring3_abandon(void);

bool ring3_proc_dead(struct ring3_proc *proc)
{
	return host_load(&proc->state) == RING3_PROC_DEAD;
}

/*
 * The driver is not of the process whose memory the task needs: the task moves to its own thread. An awake thread
 * is handed the vCPU. A sleeping one takes 10 to 30 us to wake: it is called, and the driver, often the sender of
 * the data, goes on meanwhile.
 */
static void move_home(struct ring3_thread *tb)
{
	if (faulthandler_disabled() || irqs_disabled() || !ring3_thread_call(tb)) {
		ring3_park(R3_PARK_HANDOVER, tb);
		return;
	}
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
}

/* The driver is not the task's own thread. Another thread of the same process sees the same memory, so it will do. */
bool ring3_user_reach(void)
{
	struct ring3_thread *tb = current->thread.tb;

	if (!tb)
		return false;		/* a kernel thread has no user memory */
	/* More than once if the new driver dies before it takes over. */
	while (ring3_driver->proc != (unsigned long)current->thread.proc) {
		/* Or only its thread has died: adopt.c. */
		if (ring3_proc_dead(current->thread.proc) || (r3t_flags(tb) & R3_F_KILL))
			return false;
		move_home(tb);
	}
	return true;
}
EXPORT_SYMBOL(ring3_user_reach);

/* Until the next schedule() the driver is the task's own thread: nothing preempts kernel code. */
const struct ring3_home *ring3_come_home(void)
{
	struct ring3_thread *tb = current->thread.tb;

	if (!tb)
		return NULL;
	while (ring3_driver != tb) {
		if (ring3_proc_dead(current->thread.proc) || (r3t_flags(tb) & R3_F_KILL))
			return NULL;
		move_home(tb);
	}
	return (const struct ring3_home *)tb;
}

#ifndef CONFIG_RING3_SIM
/* Leaves the copy to the task's thread, which drives. Returns the number of bytes not copied. */
static unsigned long copy_outside(struct ring3_thread *tb, struct ring3_outside *copy)
{
	host_store(&r3t_copy(tb), copy);
	if (single_task_running()) {
		ring3_park(R3_PARK_COPY, NULL);
		ring3_service();
	}
	/* Other tasks are runnable, or another thread has resumed this one. A thread of another vCPU that ends the wait writes first, then wakes. */
	for (;;) {
		set_current_state(TASK_UNINTERRUPTIBLE);
		if (!host_load(&r3t_copy(tb)))
			break;
		if (ring3_proc_dead(current->thread.proc) || (r3t_flags(tb) & R3_F_EXECED)) {
			r3t_copy(tb) = NULL;
			break;
		}
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	return copy->left;
}

/* Processes with memory whose faults wait for a program, which may make calls meanwhile. */
static DECLARE_BITMAP(slow_memory, RING3_PROCS_MAX);

/* Bytes from which ring3_copy() comes to ring3_copy_long(): COPY_LONG, or 1 once a process has slow memory. */
unsigned long ring3_copy_long_from = COPY_LONG;

static bool is_slow(struct ring3_proc *proc)
{
	return ring3_proc_listed(proc) && test_bit(proc - ring3_region.procs, slow_memory);
}

/* A child has its parent's mappings. */
void ring3_memory_inherit(struct ring3_proc *proc)
{
	__assign_bit(proc - ring3_region.procs, slow_memory, is_slow(current->thread.proc));
}

/*
 * The node itself has no userfaultfd. The gate makes this call when the host has made one for the process: another
 * of its threads fills in pages, and may receive them from a socket of this node. A copy that faults with the vCPU
 * would then wait for ever. So all of this process's copies are made without the vCPU, but for single words.
 */
SYSCALL_DEFINE1(userfaultfd, int, flags)
{
	struct ring3_proc *proc = current->thread.proc;

	if (!ring3_proc_listed(proc))
		return -ENOSYS;
	__set_bit(proc - ring3_region.procs, slow_memory);
	ring3_copy_long_from = 1;
	return 0;
}

/* A copy of ring3_copy_long_from bytes or more: ring3_copy() comes here. */
unsigned long ring3_copy_long(void *to, const void *from, unsigned long n)
{
	struct ring3_outside copy = { .to = to, .from = from, .n = n, .left = n };
	struct ring3_thread *tb = current->thread.tb;

	if (!tb || ring3_driver != tb || faulthandler_disabled() || irqs_disabled() || in_interrupt() ||
	    !(is_slow(current->thread.proc) || (n >= COPY_LONG && ring3_is_contended())))
		return ring3_copy_now(to, from, n);
	return copy_outside(tb, &copy);
}
#endif

/*
 * With TURN_TRAP: see turn/debug.c. With TURN_DAY: see turn/skew.c. Else:
 * Called by the gate's SIGSEGV handler for a fault at `ip` in the image's text: returns the address to continue at.
 * A fault without an exception table entry is a kernel bug: the node is poisoned, and the thread leaves with EIO.
 * The program lives.
 */
unsigned long ring3_fixup(unsigned long ip, u64 *regs)
{
	const struct exception_table_entry *e;

	if (unlikely(ip & TURN_TRAP))
		return turn_trap(ip & ~TURN_TRAP, regs);
	if (unlikely(ip == TURN_DAY))
		return turn_day();
	if (ip < (unsigned long)_stext || ip >= (unsigned long)_etext)
		return 0;
	e = search_exception_tables(ip);
	if (e)
		return (unsigned long)&e->fixup + e->fixup;
	ring3_poison("unexpected fault in kernel code at image offset 0x%lx",
		     ip - (unsigned long)&ring3_region);
	return (unsigned long)ring3_abandon;
}
