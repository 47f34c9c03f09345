// SPDX-License-Identifier: GPL-2.0
/*
 * signal.c - receives the host's signals for the program
 *
 * Theory of operation
 * -------------------
 * The host only ever calls the gate's handlers, on a stack of the gate. They distinguish where the thread was:
 *
 * in the program: the handler builds the frame that the kernel would have built on the program's stack
 * (sigframe.c), and sets the interrupted context to the program's handler. So returning from the gate's handler
 * starts the program's. At its end the program's handler calls rt_sigreturn, which comes to the gate as any other
 * call (sigcall.c). A handler that never returns (siglongjmp) needs nothing else.
 *
 * in the gate or the image: the handler notes the signal, and blocks all others in the interrupted context
 * (signal_note()). thread->sigpending makes waits end early with an -ERESTART* code; on its way out the thread
 * delivers the signal (call.c). In three windows a thread has already checked for noted signals: before the host
 * call (gate_host), on the way out of entry.S, and in the tail of a stub. The handler moves the thread out of these
 * windows.
 *
 * Signals whose default action is death are caught too: a thread must not die in the middle of kernel code that
 * others share. They kill on the way out (fatal()), after the process has ended in the node. Signals that stop the
 * process (sigstop.c) and SIGCONT are caught for the same reason.
 *
 * noted.c has the noted signals, disposition.c the host's dispositions.
 */
#include "signal/signals.h"
#include "ring3.h"
#include "ring3_lock.h"
#include <linux/audit.h>

#define GATE_SYSCALL_BYTES	2	/* size of the instruction */
#define SYS_DISPATCH	2	/* si_code: SYS_USER_DISPATCH */
#define ALIGNMENT_CHECK	17	/* trap number */
#define GENERAL_PROTECTION	13
#define EFLAGS_AC	(1UL << 18)

extern const char gate_on_stop[], gate_on_stop_noted[];	/* context.S */
void on_signal(int sig, siginfo_t *info, struct ucontext *uc);

static bool in(u64 rip, const char *start, const char *end)
{
	return rip >= (u64)start && rip < (u64)end;
}

static bool in_image(u64 rip)
{
	return rip >= gate.text_start && rip < gate.text_end;
}

static bool in_gate(u64 rip)
{
	return in(rip, gate_text_start, gate_text_end) || in_image(rip);
}

static void __attribute__((noreturn)) crash(const siginfo_t *info, struct ucontext *uc,
					    const char *where, u64 base)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	gate_warn("signal %d in %s at +0x%lx, address 0x%lx, sp 0x%lx: a bug in ring3; the program ends",
		  info->si_signo, where, (unsigned long)(sc->rip - base),
		  (unsigned long)sc->cr2, (unsigned long)sc->rsp);
	host_default(info->si_signo);
	raise_plain(info->si_signo);
	for (;;)
		host_syscall1(__NR_exit_group, 128 + info->si_signo);
}

/*
 * A signal that the host never blocks has arrived in a fork child that still has its parent's GS, so that all state
 * found here is the parent's. It is raised again, for when the child unblocks it. True: that has been done.
 */
static bool signal_newborn(siginfo_t *info, struct ucontext *uc)
{
	u64 rip = uc->uc_mcontext.rip, all = ~0UL;

	if (likely(rip < (u64)gate_clone_born || rip >= (u64)gate_clone_known))
		return false;
	if (rip <= (u64)gate_clone_born + 3 && uc->uc_mcontext.rax)
		return false;		/* the parent, or no child was made */
	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof(all));
	raise_info(info);
	uc->uc_sigmask = all;
	return true;
}

/* Moves uc out of the windows in which the thread would miss a signal that signal_note() notes. */
static void leave_windows(struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	if (in(sc->rip, gate_exit_check, gate_exit_end)) {
		sc->rip = (u64)gate_exit_check;
		sc->rsp = gate_thread()->gate[WORD_STACK] - REGS_BYTES;
	} else if (sc->rip >= (u64)gate_host_check && sc->rip <= (u64)gate_host_insn) {
		sc->rip = (u64)gate_host_abort;
	} else if (sc->rip >= (u64)gate_clone_check && sc->rip <= (u64)gate_clone_insn && !sc->rbx) {
		sc->rip = (u64)gate_clone_abort;
	} else if (sc->rip >= (u64)gate_resume_check && sc->rip <= (u64)gate_resume_insn) {
		sc->rip = (u64)gate_resume_check;
	}
}

/* A signal that the program must not see has interrupted a call of the host: makes uc repeat it. */
static void hide_eintr(struct sigcontext *sc)
{
	if (sc->rip == (u64)gate_host_insn + GATE_SYSCALL_BYTES && (long)sc->rax == -EINTR)
		sc->rip = (u64)gate_host_abort;
	else
		patch_hide_eintr(sc);
}

/* Delivers the signal at once, or notes it until the thread leaves the gate. */
static void arrive(const siginfo_t *info, struct ucontext *uc)
{
	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);
		signal_note(info, uc);
	} else {
		signal_deliver_one(uc, info);
	}
}

static void handle(const siginfo_t *info, struct ucontext *uc)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	int sig = info->si_signo;

	end_look();
	if (unlikely(sh->shared)) {
		signal_host_install(sh, sig);	/* with the flags that another process has set meanwhile */
		if (!(SIGBIT(sig) & SIG_FORCED) && signal_ignored(sh, sig)) {
			hide_eintr(&uc->uc_mcontext);
			return;
		}
	}
	if (sh->action[sig].handler == (u64)SIG_DFL && !(SIGBIT(sig) & SIG_FORCED & gate_tcb()->forced_mask) &&
	    (from_outside(info) || !(SIGBIT(sig) & SIG_FORCED)) && unlikely(is_init())) {
		hide_eintr(&uc->uc_mcontext);
		return;
	}
	if (default_is_stop(sig) && sh->action[sig].handler == (u64)SIG_DFL) {
		hide_eintr(&uc->uc_mcontext);
		gate_tcb()->stop_again = 0;
		sigstop_raise(sig);
		sigstop_taken();
	}
	if (sig == SIGCONT && sh->action[sig].handler == (u64)SIG_DFL) {
		hide_eintr(&uc->uc_mcontext);
		if (info->si_code == SI_TIMER)
			sigstop_of_timer();
		else
			sigstop_pass_on();
		return;
	}
	arrive(info, uc);
}

bool signal_late(struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();

	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);	/* the interrupted code checks by itself */
		return false;
	}
	if (READ_ONCE(tcb->stop))
		stop_park();
	signal_quiet(tcb);		/* a signal that is noted after this is looked for again */
	if (READ_ONCE(tcb->npending))
		signal_deliver(uc);
	return true;
}

/* ---- the host's handlers ---- */

/*
 * If the thread is killed in a handler, the context that the handler has interrupted is lost with it. Other threads
 * must continue kernel code (the image's adopt.c), so in that case the registers are stored where the adopter finds
 * them. True: they were stored.
 */
static bool lend(const struct ucontext *uc)
{
	u64 *word;

	if (!in_image(uc->uc_mcontext.rip))
		return false;
	word = &gate_thread()->gate[RING3_ADOPT_WORD];
	memcpy(word + 1, &uc->uc_mcontext.r8, RING3_ADOPT_REGS * sizeof(u64));
	__atomic_store_n(word, 1, __ATOMIC_RELEASE);
	return true;
}

static void take_back(bool lent)
{
	if (lent)
		__atomic_store_n(&gate_thread()->gate[RING3_ADOPT_WORD], 0, __ATOMIC_RELEASE);
}

/*
 * In virtual time the node announces the ends of children. The host does so too, since exec restores the exit
 * signal that the gate removed from clone; it does so in real time, so those are dropped.
 */
static bool of_host(siginfo_t *info)
{
	if (likely(!gate.sim) || info->si_signo != SIGCHLD)
		return false;
	if (info->si_errno != OF_NODE)
		return true;
	info->si_errno = 0;
	return false;
}

void on_signal(int sig, siginfo_t *info, struct ucontext *uc)
{
	bool lent;

	own_gs_enter();
	info->si_signo = sig;
	if (sig == SIGCONT && unlikely(sigstop_continued(info, uc)))
		return;
	lent = lend(uc);
	if (unlikely(of_host(info)))
		hide_eintr(&uc->uc_mcontext);
	else
		handle(info, uc);
	take_back(lent);
	if (default_is_stop(sig))
		sigstop_taken();
}

static void on_sigsys(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	own_gs_enter();
	info->si_signo = sig;
	if (info->si_code != SYS_DISPATCH) {
		if (likely(!signal_newborn(info, uc)))
			handle(info, uc);
		return;
	}
	if (unlikely(info->si_arch != AUDIT_ARCH_X86_64)) {
		static u32 said;

		/* int $0x80: the numbers and registers of 32-bit calls are not supported. */
		if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
			gate_warn("a 32-bit system call (int $0x80) from a 64-bit program: not supported");
		sc->rax = -ENOSYS;
		return;
	}
	count(COUNT_TRAPS);
	patch_trap(sc->rip, sc->rax);
	sud_call(uc);
}

/* The process ends as if by SIGKILL. */
static void killed(struct ucontext *uc)
{
	const siginfo_t info = { .si_signo = SIGKILL };

	arrive(&info, uc);
}

/* A signal that the host never blocks, sent by a process or thread. */
static void sent(siginfo_t *info, struct ucontext *uc)
{
	u64 value;

	if (unlikely(signal_newborn(info, uc)))
		return;
	if (unlikely(sim_is_preempted(info, &value))) {
		patch_leave(uc);
		if (in_gate(uc->uc_mcontext.rip)) {
			if (!gate_tcb()->npending)
				hide_eintr(&uc->uc_mcontext);
			return;
		}
		signal_set_mask(uc->uc_sigmask);
		sud_wait(uc, value);
		return;
	}
	if (unlikely(limits_is_death(info)))
		killed(uc);
	else if (!stop_signal(info) && !limits_is_mark(info))
		handle(info, uc);
	else if (!gate_tcb()->npending)
		hide_eintr(&uc->uc_mcontext);
}

/*
 * SIGILL, SIGFPE or SIGTRAP of an instruction. A SIGTRAP inside the gate comes from a program that single-steps
 * itself (EFLAGS.TF).
 */
static void exception(siginfo_t *info, struct ucontext *uc)
{
	u64 rip = uc->uc_mcontext.rip;

	if (info->si_signo == SIGTRAP && unlikely(gate.sim) && sim_trap(uc))
		return;
	if (info->si_signo != SIGTRAP && in_image(rip))
		crash(info, uc, "the node's kernel", (u64)gate.region);
	if (info->si_signo != SIGTRAP && in_gate(rip))
		crash(info, uc, "the gate", RING3_GATE_BASE);
	handle(info, uc);
}

static void image_fault(siginfo_t *info, struct ucontext *uc)
{
	bool was_well = READ_ONCE(gate.region->state) < RING3_POISONED;
	u64 to = gate.fixup(uc->uc_mcontext.rip);

	if (was_well && READ_ONCE(gate.region->state) == RING3_POISONED)
		oops_trace(uc);
	if (!to)
		crash(info, uc, "the node's kernel", (u64)gate.region);
	uc->uc_mcontext.rip = to;
}

/* The end of a call that needs the program's whole context: repeats the call, or delivers signals. */
static void exit_trap(struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	bool redo = sc->rip == (u64)gate_trap_redo;

	count(COUNT_HLT);
	sc->rip = gate_thread()->gate[WORD_RESUME];
	if (redo) {
		/*
		 * A signal that was noted on the way here keeps the others blocked until it is delivered; uc has
		 * the program's mask.
		 */
		signal_set_mask(uc->uc_sigmask);
		sud_call(uc);
		return;
	}
	signal_mask_back(gate_tcb(), uc);
	signal_deliver(uc);
}

/*
 * A fault in the gate or the image. The program may have set EFLAGS.AC, which Linux clears on entry. Here it is
 * still set in kernel code, which makes unaligned accesses: clears it. The program has lost it after this call.
 */
static void own_fault(siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	u64 rip = sc->rip;

	if (unlikely(sc->trapno == ALIGNMENT_CHECK)) {
		static u32 said;

		sc->eflags &= ~EFLAGS_AC;
		if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
			gate_warn("a call with EFLAGS.AC set: cleared, in the program too");
	} else if (unlikely(sc->trapno == GENERAL_PROTECTION) && tsc_read(sc)) {
		return;
	} else if (in(rip, gate_copy_start, gate_copy_end)) {
		sc->rip = (u64)gate_copy_fault;
	} else if (in_image(rip)) {
		image_fault(info, uc);
	} else if (rip == (u64)gate_trap_deliver || rip == (u64)gate_trap_redo) {
		exit_trap(uc);
	} else if (patch_trapped(sc)) {
		count(COUNT_HLT);
		signal_set_mask(uc->uc_sigmask);
		sud_call(uc);
	} else if (stop_ending()) {
		stop_park();	/* does not return: the process is ending, and its state has been released */
	} else {
		crash(info, uc, "the gate", RING3_GATE_BASE);
	}
}

static void fault(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	info->si_signo = sig;
	if (from_outside(info)) {
		sent(info, uc);
		return;
	}
	if (SIGBIT(sig) & SIG_CPU) {
		exception(info, uc);
		return;
	}
	if (in_gate(sc->rip)) {
		own_fault(info, uc);
		return;
	}
	if (unlikely(gate.sim) && sc->trapno == GENERAL_PROTECTION && tsc_virtual(sc))
		return;

	switch (patch_fault(uc)) {
	case PATCH_RETRY:
		return;
	case PATCH_CALL:
		count(COUNT_HLT);
		signal_set_mask(uc->uc_sigmask);
		sud_call(uc);
		return;
	case PATCH_NONE:
		patch_leave(uc);
		signal_deliver_one(uc, info);
	}
}

static void on_fault(int sig, siginfo_t *info, struct ucontext *uc)
{
	bool lent;

	own_gs_enter();
	lent = lend(uc);
	fault(sig, info, uc);
	take_back(lent);
}

const struct host_handlers host_handlers = {
	.signal = on_signal,
	.sigsys = on_sigsys,
	.fault = on_fault,
	.stop = gate_on_stop,
	.stop_noted = gate_on_stop_noted,
	.restorer = gate_restorer,
};
