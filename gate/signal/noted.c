// SPDX-License-Identifier: GPL-2.0
/*
 * noted.c - signals that arrived while the thread was in the gate or the image, until its way out
 */
#include "signal/signals.h"
#include "ring3_lock.h"

u64 signal_block_all(void)
{
	u64 set = ~SIG_FORCED, old;

	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&set, (long)&old, sizeof(set));
	return old;
}

void signal_set_mask(u64 mask)
{
	mask &= ~SIG_FORCED;
	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask));
}

/* Sends the signals that the node has raised for this thread (SIGPIPE, SIGIO) to it on the host. */
void signal_drain_node(void)
{
	struct ring3_thread *t = gate_thread();
	u32 n = READ_ONCE(t->nsig), i;

	if (n > RING3_SIGQ)
		n = RING3_SIGQ;
	for (i = 0; i < n; i++) {
		siginfo_t info;

		memset(&info, 0, sizeof(info));
		info.si_signo = t->sigq[i].signo & ~RING3_SIG_PROCESS;
		info.si_code = t->sigq[i].code;
		if (info.si_signo < 1 || info.si_signo > SIGNALS)
			continue;
		if (info.si_signo == SIGKILL)
			sim_killed();
		/* POLL_IN and its like; in virtual time every signal comes from the node. */
		if (info.si_code > 0 || gate.sim) {
			memcpy(&info._sifields, t->sigq[i].data, sizeof(t->sigq[i].data));
		} else {
			info.si_pid = host_syscall0(__NR_getpid);
			info.si_uid = host_syscall0(__NR_getuid);
		}
		if (gate.sim && info.si_signo == SIGCHLD)
			info.si_errno = OF_NODE;
		/*
		 * A signal to the process may be awaited by another thread. Only the first thread may send a
		 * process a siginfo with POLL_*. In virtual time the node knows the threads' masks and has chosen
		 * the thread: a choice of the host's would depend on real time.
		 */
		if ((t->sigq[i].signo & RING3_SIG_PROCESS) && !gate.sim &&
		    !host_syscall3(__NR_rt_sigqueueinfo, host_syscall0(__NR_getpid), info.si_signo,
				   (long)&info))
			continue;
		raise_info(&info);
	}
	WRITE_ONCE(t->nsig, 0);
}

/* uc is inside the gate: keeps the signal for the way out, and blocks all others. */
void signal_note(const siginfo_t *info, struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();
	struct ring3_thread *t = gate_thread();
	u32 i;

	for (i = 0; i < tcb->npending; i++)
		if (tcb->pending[i].si_signo == info->si_signo)
			return;
	if (tcb->npending == PENDING_MAX)
		return;		/* can't happen: noted signals are blocked */
	/*
	 * If the first signal came while the gate had all blocked, this may be the first that knows the program's
	 * mask.
	 */
	if (!tcb->npending || tcb->saved_mask == ALL_BLOCKED)
		tcb->saved_mask = tcb->temp_active ? tcb->temp_orig : uc->uc_sigmask;
	if (!tcb->npending)
		tcb->temp_noted = tcb->temp_active | tcb->temp_host;
	tcb->pending[tcb->npending++] = *info;
	uc->uc_sigmask = ALL_BLOCKED;
	WRITE_ONCE(t->sigpending, 1);
	r3_word_set(&t->word, RING3_WORD_SIGNAL);
}

void signal_quiet(struct gate_tcb *tcb)
{
	struct ring3_thread *t = tcb->thread;

	WRITE_ONCE(t->sigpending, 0);
	r3_word_clear(&t->word, RING3_WORD_SIGNAL);
}

/*
 * Is a noted signal to be delivered? Drops those that the program ignores by now, and restores the mask if none is
 * left.
 */
bool signal_pending(struct gate_tcb *tcb)
{
	struct ring3_thread *t = gate_thread();
	u32 i, n = READ_ONCE(tcb->npending);

	for (i = 0; i < n; i++) {
		int sig = tcb->pending[i].si_signo;
		u64 handler = tcb->sighand->action[sig].handler;

		if (handler > (u64)SIG_IGN || (handler == (u64)SIG_DFL && default_is_death(sig)))
			return true;
		if (handler == (u64)SIG_DFL && default_is_stop(sig))
			sigstop_process(sig);
	}
	signal_quiet(tcb);
	/* None was noted at the check above: one that is now arrived after it, and must not be dropped. */
	if (n) {
		tcb->npending = 0;
		tcb->temp_noted = 0;
		signal_set_mask(tcb->saved_mask);
	}
	barrier();
	if (!READ_ONCE(tcb->npending))
		return false;
	WRITE_ONCE(t->sigpending, 1);	/* one arrived in between */
	return true;
}

/* Does the call restart? By the rules of kernel/signal.c for a call that a handler interrupts. */
bool signal_wants_restart(struct gate_tcb *tcb, long ret)
{
	int sig = tcb->pending[0].si_signo;

	if (ret == -ERESTARTNOINTR)
		return true;
	return ret == -ERESTARTSYS && (tcb->sighand->action[sig].flags & SA_RESTART);
}
