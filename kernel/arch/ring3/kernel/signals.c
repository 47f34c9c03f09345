// SPDX-License-Identifier: GPL-2.0
/* signals.c - signals that the node raised, on their way to the programs */
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
 * Signals that the node itself raised (SIGPIPE, SIGIO, SIGURG): the program's
 * handlers are known to the host only, so they are passed on, through
 * thread->sigq to a thread that is inside, by calls of the host to one that is not. One for the process goes to
 * the process: which thread lets it in, or waits for it, the host knows.
 */
static void signal_outside(struct ring3_thread *tb, int sig, const kernel_siginfo_t *info, bool process)
{
	const struct ring3_proc *proc = (const struct ring3_proc *)tb->proc;
	struct ring3_signal s = {
		.pid = proc->pid,
		.tid = process ? 0 : tb->tid,
		.signo = sig,
	};

	/* Not there yet (CLONE), or no more: to kill(), 0 is the group of whoever sends. */
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
 * Forwards what is pending. The flag goes by what is still queued then, under the lock:
 * another signal may have come after the last look, and one that is queued without
 * the flag keeps every later one of its number from waking anybody.
 */
void ring3_take_signals(struct ring3_thread *tb, bool inside)
{
	if (test_thread_flag(TIF_NOTIFY_SIGNAL)) {
		clear_notify_signal();
		if (task_work_pending(current))
			task_work_run();
		/* It may have come for a call that has not begun yet. */
		if (READ_ONCE(tb->sigpending))
			r3_word_set(&tb->word, RING3_WORD_SIGNAL);
	}
	if (test_thread_flag(TIF_SIGPENDING)) {
		forward_signals(tb, inside);
		spin_lock_irq(&current->sighand->siglock);
		/* Of stops and cgroup.freeze nothing is queued, and a task does not stop here: the host stops programs. */
		current->jobctl &= ~(JOBCTL_PENDING_MASK | JOBCTL_TRAP_FREEZE);
		recalc_sigpending();
		spin_unlock_irq(&current->sighand->siglock);
	}
}
