// SPDX-License-Identifier: GPL-2.0
/* signals.c - passes signals that the node raised to the programs */
#include <linux/bug.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/task_work.h>
#include <asm/ring3.h>
#include "errand.h"
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

/*
 * Signals that the node itself raised (SIGPIPE, SIGIO, SIGURG). Only the host knows the program's handlers, so they
 * are passed on: through thread->sigq to a thread that is inside, by a host call to one that is not. A signal to
 * the process goes to the process: the host knows which thread has unblocked it or waits for it.
 */
static void signal_outside(struct ring3_thread *tb, int sig, const kernel_siginfo_t *info, bool process)
{
	const struct ring3_proc *proc = (const struct ring3_proc *)tb->proc;
	struct ring3_signal s = {
		.pid = proc->pid,
		.tid = process ? 0 : tb->tid,
		.signo = sig,
	};

	/* The process has no pid yet (CLONE), or none any more. For kill(), 0 would be the group of the sender. */
	if (s.pid <= 0 || (!process && s.tid <= 0))
		return;
	if (info->si_code >= POLL_IN && info->si_code <= POLL_HUP) {
		s.fd = info->si_fd;
		s.band = info->si_band;
	}
	ring3_signal(proc, &s);
}

static void forward_signals(struct ring3_thread *tb, bool inside)
{
	kernel_siginfo_t info;
	enum pid_type type;
	bool process;
	int sig;

	for (;;) {
		spin_lock_irq(&current->sighand->siglock);
		sig = dequeue_signal(&current->blocked, &info, &type);
		spin_unlock_irq(&current->sighand->siglock);
		if (!sig)
			return;
		if ((sig == SIGKILL && !(IS_ENABLED(CONFIG_RING3_SIM) && inside)) || (r3t_flags(tb) & R3_F_KILL))
			continue;
		if (IS_ENABLED(CONFIG_RING3_SIM) && sig == SIGSTOP) {
			turn_stop();
			continue;
		}
		process = type == PIDTYPE_TGID;
		if (inside && tb->nsig < RING3_SIGQ) {
			struct ring3_siginfo *q = &tb->sigq[tb->nsig];

			*q = (struct ring3_siginfo) {
				.signo = sig | (process ? RING3_SIG_PROCESS : 0), .code = info.si_code,
			};
			BUILD_BUG_ON(sizeof(info._sifields) < sizeof(q->data));
			memcpy(q->data, &info._sifields, sizeof(q->data));
			tb->nsig++;
		} else if (tb->proc) {
			signal_outside(tb, sig, &info, process);
		}
	}
}

/*
 * Forwards pending signals. The flag is recomputed under the lock: another signal may have arrived after the last
 * check, and a signal that is queued without the flag would keep later ones of its number from waking the task.
 */
void ring3_take_signals(struct ring3_thread *tb, bool inside)
{
	if (test_thread_flag(TIF_NOTIFY_SIGNAL)) {
		clear_notify_signal();
		if (task_work_pending(current))
			task_work_run();
		/* The signal may have arrived for a call that has not begun yet. */
		if (READ_ONCE(tb->sigpending))
			r3_word_set(&tb->word, RING3_WORD_SIGNAL);
	}
	if (test_thread_flag(TIF_SIGPENDING)) {
		forward_signals(tb, inside);
		spin_lock_irq(&current->sighand->siglock);
		/* Stops and cgroup.freeze queue nothing, and a task does not stop here: the host stops programs. */
		current->jobctl &= ~(JOBCTL_PENDING_MASK | JOBCTL_TRAP_FREEZE);
		recalc_sigpending();
		spin_unlock_irq(&current->sighand->siglock);
	}
}
