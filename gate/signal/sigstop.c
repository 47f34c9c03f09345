// SPDX-License-Identifier: GPL-2.0
/*
 * sigstop.c - the default action of SIGTSTP, SIGTTIN and SIGTTOU: stops the process with no thread inside the image
 *
 * Theory of operation
 * -------------------
 * The host would stop threads anywhere, also in kernel code, which would hold the node up. So the gate catches
 * these signals. The thread that gets one blocks it and raises it again for itself, so that the signal is pending
 * on the host until all threads have left the image (stop.c). Then the thread unblocks it with the default
 * disposition. SIGCONT cancels a pending stop signal, as on Linux.
 *
 * SIGCONT may come before the signal is raised again. Then the host has no stop signal to cancel, and the one
 * raised later would stop the process for good. That is not a short window: a thread that returns from
 * sched_yield() may have its signal frame built, and then lose its CPU for milliseconds before the first
 * instruction of the handler. Therefore the gate catches SIGCONT if the program does not, and the handler of a stop
 * signal leaves SIGCONT unblocked. The host prefers the process's first thread for both. So the handler of SIGCONT
 * interrupts that of the stop signal, at its first instruction at the earliest, and sets a flag:
 *
 *	WORD_STOPPING	0		no stop signal is being taken
 *			STOP_TAKEN	its handler runs, and has not raised it again
 *			STOP_CONTINUED	the same, and SIGCONT has come since
 *
 * A stop signal that was raised in spite of the flag is cancelled. Two cases are not covered. First, the host drops
 * a SIGCONT that is sent during the system call that raises the stop signal, since raising a stop signal cancels
 * SIGCONT. Second, another thread than the first may take the stop signal, if the first one blocks it, while
 * SIGCONT goes to the first.
 */
#include "signal/signals.h"

#define STOP_TAKEN	1
#define STOP_CONTINUED	2

static u64 *stopping(void)
{
	return &gate_thread()->gate[WORD_STOPPING];
}

static u64 pending_on_host(void)
{
	u64 pending = 0;

	host_syscall2(__NR_rt_sigpending, (long)&pending, 8);
	return pending;
}

/*
 * Cancels the signal that this thread has raised. SIGCONT may have done that already: then a pending one came after
 * it, and counts.
 */
static void take_back(int sig)
{
	struct timespec none = { 0 };
	u64 set = SIGBIT(sig);
	siginfo_t info;

	if (host_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none, 8) != sig)
		return;
	if (info.si_code != SI_TKILL || info.si_pid != host_syscall0(__NR_getpid))
		raise_info(&info);
}

void sigstop_raise(int sig)
{
	struct gate_tcb *tcb = gate_tcb();
	u64 *word = stopping();

	if (tcb->stop_again == (u32)sig)
		return;
	tcb->stop_again = sig;
	/* Raising it would cancel a pending SIGCONT. */
	if (READ_ONCE(*word) == STOP_CONTINUED || (pending_on_host() & SIGBIT(SIGCONT)))
		return;
	raise_plain(sig);
	if (READ_ONCE(*word) == STOP_CONTINUED)
		take_back(sig);
}

/* The end of gate_on_stop. A later SIGCONT belongs to the next stop. */
void sigstop_taken(void)
{
	if (likely(!READ_ONCE(*stopping())))
		return;
	signal_block_all();
	WRITE_ONCE(*stopping(), 0);
}

bool sigstop_continued(const siginfo_t *info, struct ucontext *uc)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	u64 *word = stopping();

	if (uc->uc_mcontext.rip == (u64)host_handlers.stop)
		uc->uc_mcontext.rip = (u64)host_handlers.stop_noted;
	else if (likely(!READ_ONCE(*word)))
		return false;
	WRITE_ONCE(*word, STOP_CONTINUED);
	/* The program's own handler runs after the caller has ended. */
	if (sh->action[SIGCONT].handler > (u64)SIG_IGN) {
		uc->uc_sigmask |= SIGBIT(SIGCONT);
		raise_info(info);
	}
	return true;
}

/*
 * Another thread may take SIGCONT, if it checks for signals first. Tells the first thread, and raises it on the
 * host again.
 */
void sigstop_pass_on(void)
{
	long process = host_syscall0(__NR_getpid);

	if (host_syscall0(__NR_gettid) != process)
		host_syscall3(__NR_tgkill, process, process, SIGCONT);
}

/*
 * A timer's SIGCONT arms the timer again as it is taken, so that one of some nanoseconds would call the handler for
 * ever. The host, which ignores such a signal, leaves the timer alone until then. Until the program's next change of
 * the disposition it does so: a stop signal that this process gets meanwhile may outlive a SIGCONT that comes at once.
 */
void sigstop_of_timer(void)
{
	host_default(SIGCONT);
}

/* Returns after SIGCONT, which may already have come. */
void sigstop_process(int sig)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_sighand *sh = tcb->sighand;
	u64 set = SIGBIT(sig), old;

	sigstop_raise(sig);		/* if the program had a handler when the signal came */
	tcb->stop_again = 0;
	if (!(pending_on_host() & set))
		return;
	/* Another thread is in a long call: a stop in there would hold up the node. SIGCONT ends the wait. */
	while (!stop_others_for_now()) {
		stop_undo();
		if (!(pending_on_host() & set))
			return;
	}
	host_default(sig);
	host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, (long)&old, 8);
	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, 8);
	signal_host_install(sh, sig);
	stop_undo();
}
