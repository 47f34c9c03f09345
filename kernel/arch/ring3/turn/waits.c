// SPDX-License-Identifier: GPL-2.0
/*
 * waits.c - /proc/ring3_waits: which threads of programs wait, since when, and whether a timer ends it
 *
 * `ring3 sim' reads this where its plan has nothing left to do. One line for each thread:
 *
 *	PID TID STATE SINCE CALL	SINCE: ns of virtual time, at which the thread has made its last call
 *
 * STATE is `runs', `timed' (a timer ends the wait) or `waits' (another thread or a packet has to). Behind them `timer FUNCTION' for
 * each other timer of high resolution that is armed: it may wake a program. Timers of low resolution are the
 * network's (retransmissions and the like), and cannot be told from the kernel's own housekeeping.
 */
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/sched/task_stack.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/timer.h>
#include <asm/ring3.h>
#include "../vcpu/vcpu.h"
#include "turn.h"

DECLARE_PER_CPU(struct hrtimer_cpu_base, hrtimer_bases);	/* kernel/time/tick-internal.h */

/* As schedule_timeout() has it on its stack (kernel/time/timer.c). */
struct process_timer {
	struct timer_list timer;
	struct task_struct *task;
};

/* The kernel's own, which no program waits for. */
static const char *const housekeeping[] = { "tick_nohz_handler", "tick_sched_timer", "sched_rt_period_timer", "dl_task_timer" };

static enum hrtimer_restart (*sleeper_function(void))(struct hrtimer *)
{
	struct hrtimer_sleeper s;

	hrtimer_init_sleeper_on_stack(&s, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	destroy_hrtimer_on_stack(&s.timer);
	return s.timer.function;
}

static bool is_housekeeping(const char *name)
{
	return match_string(housekeeping, ARRAY_SIZE(housekeeping), name) >= 0;
}

/* Marks the threads that sleep until a timer; names the others, if m. */
static void look_at_timers(struct seq_file *m)
{
	struct hrtimer_cpu_base *base = this_cpu_ptr(&hrtimer_bases);
	enum hrtimer_restart (*sleeper)(struct hrtimer *) = sleeper_function();
	struct timerqueue_node *node;
	char name[KSYM_SYMBOL_LEN];
	int i;

	for (i = 0; i < HRTIMER_MAX_CLOCK_BASES; i++) {
		for (node = timerqueue_getnext(&base->clock_base[i].active); node; node = timerqueue_iterate_next(node)) {
			struct hrtimer *timer = container_of(node, struct hrtimer, node);
			struct task_struct *task;

			if (timer->function == sleeper) {
				task = container_of(timer, struct hrtimer_sleeper, timer)->task;
				if (!m && task && task->thread.tb)
					r3t_flags(task->thread.tb) |= R3_F_TIMED;
				continue;
			}
			if (!m)
				continue;
			sprint_symbol_no_offset(name, (unsigned long)timer->function);
			if (!is_housekeeping(name))
				seq_printf(m, "timer %s\n", name);
		}
	}
}

/* Waits in schedule_timeout(), as those for sockets with SO_RCVTIMEO: its timer lies on the task's stack. */
static bool is_timed_by_wheel(const struct task_struct *task)
{
	static unsigned long function;
	unsigned long end = (unsigned long)task_stack_page(task) + THREAD_SIZE;
	unsigned long at = task->thread.sp & ~7UL;
	const struct process_timer *t;

	if (!function)
		function = kallsyms_lookup_name("process_timeout");
	if (at < (unsigned long)task_stack_page(task))
		return false;
	for (; function && at + sizeof(*t) <= end; at += sizeof(long)) {
		t = (const struct process_timer *)at;
		if ((unsigned long)t->timer.function == function && t->task == task && timer_pending(&t->timer))
			return true;
	}
	return false;
}

static const char *state_of(struct ring3_thread *tb)
{
	const struct task_struct *task = (const struct task_struct *)tb->task;

	if (READ_ONCE(task->__state) == TASK_RUNNING)
		return "runs";
	/* A look at what is the host's has a timer of the gate's own. */
	if (tb->nr == RING3_NR_HOST_WAIT && tb->args[1])
		return "waits";
	return (r3t_flags(tb) & R3_F_TIMED) || is_timed_by_wheel(task) ? "timed" : "waits";
}

/* No lock: nothing here waits, and blocks are never freed. */
static int show(struct seq_file *m, void *v)
{
	struct ring3_thread *tb;
	char call[32];

	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK])
		r3t_flags(tb) &= ~R3_F_TIMED;
	look_at_timers(NULL);
	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		if (!(r3t_flags(tb) & R3_F_TURN) || (r3t_flags(tb) & R3_F_GONE) || !tb->task || !tb->proc)
			continue;
		turn_name_call(tb->nr == RING3_NR_AT ? tb->args[1] : tb->nr, call, sizeof(call));
		seq_printf(m, "%d %d %s %llu %s\n", ((struct ring3_proc *)tb->proc)->pid, tb->tid, state_of(tb),
			   (u64)r3t_since(tb), call);
	}
	look_at_timers(m);
	return 0;
}

static int __init make_waits(void)
{
	return proc_create_single("ring3_waits", 0444, NULL, show) ? 0 : -ENOMEM;
}
fs_initcall(make_waits);
