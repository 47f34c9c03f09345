// SPDX-License-Identifier: GPL-2.0
/*
 * preempt.c - the sleep of a thread that has computed for long, and /proc/ring3_preempted, which says whose they were
 *
 * Where such a sleep comes depends on the machine (patience.c). So `ring3 sim' names the processes in the result of a run. One line for
 * each:
 *
 *	NET PID COUNT FIRST COMM	NET: inode number of its network namespace; FIRST: ns of virtual time
 *
 * COMM is as in /proc/PID/status: a newline is \n, a backslash two. Numbers of processes are used again, so a process is known by its start, too.
 */
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/list.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string_helpers.h>
#include <asm/ring3.h>
#include <net/net_namespace.h>
#include "turn.h"

struct preempted {
	struct list_head list;
	s32 pid;
	u64 start;
	u32 net, count;
	u64 first;
	char comm[TASK_COMM_LEN];
};

/* No lock: nothing here waits while it looks at the list. */
static LIST_HEAD(all);

bool turn_is_preempt(u64 value)
{
	return value >> TURN_MARK_SHIFT == TURN_MARK_PREEMPT;
}

static void note(void)
{
	s32 pid = ((const struct ring3_proc *)current->thread.tb->proc)->pid;
	u64 start = current->group_leader->start_time;
	struct preempted *p;

	list_for_each_entry(p, &all, list) {
		if (p->pid == pid && p->start == start) {
			p->count++;
			return;
		}
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL | __GFP_NOFAIL);
	p->pid = pid;
	p->start = start;
	p->net = current->nsproxy->net_ns->ns.inum;
	p->count = 1;
	p->first = ring3_clock();
	get_task_comm(p->comm, current);
	list_add_tail(&p->list, &all);
}

/* A signal ends it: its handler is what the loop may wait for. */
long turn_preempt(u64 value)
{
	ktime_t sleep = ns_to_ktime(value & (BIT_ULL(TURN_MARK_SHIFT) - 1));

	note();
	set_current_state(TASK_INTERRUPTIBLE);
	return schedule_hrtimeout(&sleep, HRTIMER_MODE_REL) ? -EINTR : 0;
}

static int show(struct seq_file *m, void *v)
{
	struct preempted *p;

	list_for_each_entry(p, &all, list) {
		seq_printf(m, "%u %d %u %llu ", p->net, p->pid, p->count, p->first);
		seq_escape_str(m, p->comm, ESCAPE_SPACE | ESCAPE_SPECIAL, "\n\\");
		seq_putc(m, '\n');
	}
	return 0;
}

static int __init make_preempted(void)
{
	return proc_create_single("ring3_preempted", 0444, NULL, show) ? 0 : -ENOMEM;
}
fs_initcall(make_preempted);
