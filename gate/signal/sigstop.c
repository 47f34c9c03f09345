// SPDX-License-Identifier: GPL-2.0
/*
 * sigstop.c - SIGTSTP, SIGTTIN and SIGTTOU with their default: the process stops, none of its threads in the node
 *
 * Theory of operation
 * -------------------
 * The host would stop the threads wherever they are, also in kernel code, which holds up the node. So the
 * gate catches these signals. The thread that gets one raises it again, for itself, while it blocks it: the signal is
 * pending on the host until all threads are out of the image (stop.c). Then the thread lets it in with the default
 * disposition. SIGCONT takes a pending stop signal away, as on Linux.
 *
 * SIGCONT may come before the signal is raised again. The host then has no stop signal to take away, and the one that is
 * raised later would stop the process for good. This is not a short time: a thread that returns from sched_yield() has its
 * signal's frame built, and loses its CPU for milliseconds before it runs the handler's first instruction. Therefore
 * the gate catches SIGCONT where the program does not, and the handler of a stop signal leaves SIGCONT unblocked. The host prefers
 * a process's first thread for both, so the handler of SIGCONT interrupts that of the stop signal, at its first
 * instruction at the earliest, and leaves a note:
 *
 *	WORD_STOPPING	0		no stop signal is being taken
 *			STOP_TAKEN	its handler runs, and has not raised it again
 *			STOP_CONTINUED	the same, and SIGCONT has come since
 *
 * A stop signal that was raised in spite of the note is taken back. Two cases are not covered. The host drops a SIGCONT that is
 * being sent while the thread is in the system call that raises the signal: to raise a stop signal takes SIGCONT
 * away. And another thread than the first may take the stop signal, if the first one blocks it; SIGCONT goes to the first.
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

/* The one that this thread has raised. SIGCONT may have done that already: then what is there came after it, and counts. */
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
	/* To raise it takes away a SIGCONT that is pending. */
	if (READ_ONCE(*word) == STOP_CONTINUED || (pending_on_host() & SIGBIT(SIGCONT)))
		return;
	raise_plain(sig);
	if (READ_ONCE(*word) == STOP_CONTINUED)
		take_back(sig);
}

/* The end of gate_on_stop. Any SIGCONT is now the next handler's. */
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
	/* The program's own handler runs when this one's caller has come to its end. */
	if (sh->action[SIGCONT].handler > (u64)SIG_IGN) {
		uc->uc_sigmask |= SIGBIT(SIGCONT);
		raise_info(info);
	}
	return true;
}

/* Another thread may get SIGCONT, if it looks for signals first. The first one is told, and the host once more. */
void sigstop_pass_on(void)
{
	long process = host_syscall0(__NR_getpid);

	if (host_syscall0(__NR_gettid) != process)
		host_syscall3(__NR_tgkill, process, process, SIGCONT);
}

/* Comes back after SIGCONT, which may have come already. */
void sigstop_process(int sig)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_sighand *sh = tcb->sighand;
	u64 set = SIGBIT(sig), old;

	sigstop_raise(sig);		/* with a handler when it came */
	tcb->stop_again = 0;
	if (!(pending_on_host() & set))
		return;
	/* A long call of another thread: to stop in there would hold up the node. SIGCONT ends the wait. */
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
