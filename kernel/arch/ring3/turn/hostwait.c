// SPDX-License-Identifier: GPL-2.0
/*
 * hostwait.c - waits for what is the host's: unix sockets, FIFOs, file locks
 *
 * Such an object becomes ready by what another program of the simulation does. The gate says so behind each call that may
 * have done that (HOST_CHANGED). Those that wait then look again, at the same virtual time. So the host keeps the object, and
 * the node the wait.
 */
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <asm/ring3.h>
#include "turn.h"

struct waiter {
	struct list_head list;
	struct task_struct *task;
	const struct net *net;
	bool woken;
};

/* No lock: nothing here waits while it looks at the list. */
static LIST_HEAD(waiters);

long ring3_sys_host_wait(u64 ns)
{
	struct waiter w = { .task = current, .net = current->nsproxy->net_ns };
	ktime_t timeout = ns_to_ktime(ns);
	int left = 1;

	if (unlikely(turn_is_preempt(ns)))
		return turn_preempt(ns);
	list_add_tail(&w.list, &waiters);
	ring3_region.host_waiters++;
	while (!w.woken && left && !signal_pending(current)) {
		set_current_state(TASK_INTERRUPTIBLE);
		left = schedule_hrtimeout(&timeout, HRTIMER_MODE_REL);
	}
	ring3_region.host_waiters--;
	list_del(&w.list);
	if (w.woken)
		return 0;
	turn_looked = !left;
	return left ? -EINTR : 1;
}

long ring3_sys_host_changed(void)
{
	const struct net *net = current->nsproxy->net_ns;
	struct waiter *w;

	list_for_each_entry(w, &waiters, list) {
		if (w->net != net)
			continue;
		w->woken = true;
		wake_up_process(w->task);
	}
	return 0;
}
