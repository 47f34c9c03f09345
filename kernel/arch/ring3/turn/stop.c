// SPDX-License-Identifier: GPL-2.0
/*
 * stop.c - processes that stop and go on, in virtual time
 *
 * SIGSTOP is the node's: a thread that the host stops would keep the turn. As in do_signal_stop() (kernel/signal.c) all
 * threads are called, and stop on their way home. SIGCONT ends it there, in prepare_signal(). The parent hears of both as
 * get_signal() would say it, where programs' signals do not come to.
 */
#include <linux/cred.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/signal.h>
#include <linux/uidgid.h>
#include <asm/ring3.h>
#include "../vcpu/vcpu.h"
#include "turn.h"

static void tell_parent(int why)
{
	struct task_struct *leader = current->group_leader, *parent;
	struct kernel_siginfo info;
	struct sighand_struct *sighand;
	unsigned long flags;

	clear_siginfo(&info);
	info.si_signo = SIGCHLD;
	info.si_code = why;
	info.si_status = why == CLD_CONTINUED ? SIGCONT : SIGSTOP;
	read_lock(&tasklist_lock);
	parent = leader->real_parent;
	rcu_read_lock();
	info.si_pid = task_pid_nr_ns(leader, task_active_pid_ns(parent));
	info.si_uid = from_kuid_munged(task_cred_xxx(parent, user_ns), task_uid(leader));
	rcu_read_unlock();
	sighand = parent->sighand;
	spin_lock_irqsave(&sighand->siglock, flags);
	if (sighand->action[SIGCHLD - 1].sa.sa_handler != SIG_IGN &&
	    !(sighand->action[SIGCHLD - 1].sa.sa_flags & SA_NOCLDSTOP))
		send_signal_locked(SIGCHLD, &info, parent, PIDTYPE_TGID);
	/* It may wait with WUNTRACED or WCONTINUED. */
	__wake_up_parent(leader, parent);
	spin_unlock_irqrestore(&sighand->siglock, flags);
	read_unlock(&tasklist_lock);
}

void turn_stop(void)
{
	struct task_struct *t;
	bool stops;

	spin_lock_irq(&current->sighand->siglock);
	stops = !(current->signal->flags & (SIGNAL_GROUP_EXIT | SIGNAL_STOP_STOPPED));
	if (stops) {
		signal_set_stop_flags(current->signal, SIGNAL_STOP_STOPPED);
		current->signal->group_exit_code = SIGSTOP;
		for_each_thread(current, t)
			signal_wake_up(t, 0);
	}
	spin_unlock_irq(&current->sighand->siglock);
	if (stops)
		tell_parent(CLD_STOPPED);
}

/* What prepare_signal() has noted about SIGCONT, and left to the first thread that goes on. */
static void tell_continued(struct signal_struct *signal)
{
	unsigned int noted;

	spin_lock_irq(&current->sighand->siglock);
	noted = signal->flags & SIGNAL_CLD_MASK;
	signal->flags &= ~SIGNAL_CLD_MASK;
	spin_unlock_irq(&current->sighand->siglock);
	if (noted)
		tell_parent(noted & SIGNAL_CLD_CONTINUED ? CLD_CONTINUED : CLD_STOPPED);
}

/* Waits until the process is continued, or killed. */
void turn_stopped(struct ring3_thread *tb)
{
	struct signal_struct *signal = current->signal;
	bool stopped, killed;

	for (;;) {
		spin_lock_irq(&current->sighand->siglock);
		killed = r3t_flags(tb) & R3_F_KILL || sigismember(&current->pending.signal, SIGKILL) ||
			 sigismember(&signal->shared_pending.signal, SIGKILL);
		if (killed && !(signal->flags & SIGNAL_GROUP_EXIT))
			signal_set_stop_flags(signal, 0);
		stopped = signal->flags & SIGNAL_STOP_STOPPED;
		if (stopped) {
			current->jobctl |= JOBCTL_STOPPED;
			set_special_state(TASK_STOPPED);
		}
		spin_unlock_irq(&current->sighand->siglock);
		if (!stopped)
			break;
		schedule();
	}
	if (unlikely(signal->flags & SIGNAL_CLD_MASK))
		tell_continued(signal);
}
