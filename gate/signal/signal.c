// SPDX-License-Identifier: GPL-2.0
/*
 * signal.c - signals of the host reach the program's handlers
 *
 * Theory of operation
 * -------------------
 * The host only ever calls the gate's handlers, on a stack of the gate's own.
 * They look where the thread was:
 *
 * in the program: the frame that the kernel would have built is built on the
 *   program's stack (sigframe.c), the interrupted context is pointed at the
 *   program's handler, and returning from the gate's handler starts it. When the
 *   program's handler ends, its rt_sigreturn comes back as any other call does
 *   (sigcall.c). A handler that never returns (siglongjmp) costs nothing.
 *
 * in the gate or the image: the signal is noted and all others are blocked in the
 *   interrupted context (note). thread->sigpending makes waits end early with an
 *   -ERESTART* code; on its way out the thread delivers (call.c). Three windows need
 *   care, since a thread in them has looked already: the host call (gate_host), the way out
 *   of entry.S, and the tail of a stub. The handler moves the thread out of them.
 *
 * Signals whose default is death are caught too: a thread must not die in the
 * middle of kernel code that others share. They kill on the way out (fatal()),
 * after the node has been told. So are those that stop the process (sigstop.c), and SIGCONT.
 *
 * SIGSYS and those that instructions raise are never blocked on the host (SIG_FORCED); what
 * the program thinks of them is kept in forced_mask.
 *
 * Processes that have their handlers in common (CLONE_SIGHAND without CLONE_THREAD) have them in common in here only,
 * for the default of one must not be set on the host while another may be in kernel code. Which of them is told what
 * on the host is not known when one asks for something: so each catches all signals there, and finds here what to do.
 */
#include "signal/signals.h"
#include "ring3.h"
#include "ring3_lock.h"
#include <linux/audit.h>

#define SA_KEPT		(SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)
#define GATE_SYSCALL_BYTES	2	/* of the instruction */
#define SYS_DISPATCH	2	/* si_code: SYS_USER_DISPATCH */
#define ALIGNMENT_CHECK	17	/* traps' numbers */
#define GENERAL_PROTECTION	13
#define EFLAGS_AC	(1UL << 18)

static struct gate_sighand first_sighand;

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

/* What the node raised for this thread (SIGPIPE, SIGIO) becomes a signal of the host. */
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
		if (info.si_code > 0) {		/* POLL_IN and so on */
			info.si_fd = t->sigq[i].fd;
			info.si_band = t->sigq[i].band;
		} else {
			info.si_pid = host_syscall0(__NR_getpid);
			info.si_uid = host_syscall0(__NR_getuid);
		}
		/* Another thread may be the one that waits for it. Of a process only the first thread may say POLL_*. */
		if ((t->sigq[i].signo & RING3_SIG_PROCESS) &&
		    !host_syscall3(__NR_rt_sigqueueinfo, host_syscall0(__NR_getpid), info.si_signo,
				   (long)&info))
			continue;
		raise_info(&info);
	}
	WRITE_ONCE(t->nsig, 0);
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

/* ---- noting ---- */

/* uc is inside the gate: keep the signal for the way out, and all others off. */
static void note(const siginfo_t *info, struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();
	struct ring3_thread *t = gate_thread();
	u32 i;

	for (i = 0; i < tcb->npending; i++)
		if (tcb->pending[i].si_signo == info->si_signo)
			return;
	if (tcb->npending == PENDING_MAX)
		return;		/* can't happen */
	/* Behind one that came where the gate had all blocked, this may be the first that knows the program's mask. */
	if (!tcb->npending || tcb->saved_mask == ALL_BLOCKED)
		tcb->saved_mask = tcb->temp_active ? tcb->temp_orig : uc->uc_sigmask;
	if (!tcb->npending)
		tcb->temp_noted = tcb->temp_active | tcb->temp_host;
	tcb->pending[tcb->npending++] = *info;
	uc->uc_sigmask = ALL_BLOCKED;
	WRITE_ONCE(t->sigpending, 1);
	r3_word_set(&t->word, RING3_WORD_SIGNAL);
}

/*
 * A signal that the host never blocks has come to a child that has its parent's GS yet, so that everything here is the
 * parent's: it is raised again, for when the child lets it in. True: that has been done.
 */
static bool signal_newborn(siginfo_t *info, struct ucontext *uc)
{
	u64 rip = uc->uc_mcontext.rip, all = ~0UL;

	if (likely(rip < (u64)gate_clone_born || rip >= (u64)gate_clone_known))
		return false;
	if (rip <= (u64)gate_clone_born + 3 && uc->uc_mcontext.rax)
		return false;		/* the parent, or nobody was born */
	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, sizeof(all));
	raise_info(info);
	uc->uc_sigmask = all;
	return true;
}

/* Moves uc out of the windows in which it would miss what note() leaves. */
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

/* The host cut its call short for something that the program must not see: do it again. */
static void hide_eintr(struct sigcontext *sc)
{
	if (sc->rip == (u64)gate_host_insn + GATE_SYSCALL_BYTES && (long)sc->rax == -EINTR)
		sc->rip = (u64)gate_host_abort;
	else
		patch_hide_eintr(sc);
}

/* Is it ignored? Not if it is blocked, which those that the host never blocks may be here. */
static bool ignored(struct gate_sighand *sh, int sig)
{
	u64 handler = sh->action[sig].handler;

	return handler == (u64)SIG_IGN ||
	       (handler == (u64)SIG_DFL && !default_is_death(sig) && !default_is_stop(sig));
}

static void handle(const siginfo_t *info, struct ucontext *uc)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	int sig = info->si_signo;

	end_look();
	if (unlikely(sh->shared)) {
		signal_host_install(sh, sig);	/* with the flags that another process has asked for since */
		if (!(SIGBIT(sig) & SIG_FORCED) && ignored(sh, sig)) {
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
		sigstop_pass_on();
		return;
	}
	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);
		note(info, uc);
	} else {
		signal_deliver_one(uc, info);
	}
}

void signal_quiet(struct gate_tcb *tcb)
{
	struct ring3_thread *t = tcb->thread;

	WRITE_ONCE(t->sigpending, 0);
	r3_word_clear(&t->word, RING3_WORD_SIGNAL);
}

/*
 * Are there noted signals that mean something to the program? Drops the others (their
 * disposition has changed since) and gives the mask back.
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
	/* None was noted when we looked: one that is now came after, and is not to be dropped. */
	if (n) {
		tcb->npending = 0;
		tcb->temp_noted = 0;
		signal_set_mask(tcb->saved_mask);
	}
	barrier();
	if (!READ_ONCE(tcb->npending))
		return false;
	WRITE_ONCE(t->sigpending, 1);	/* came between */
	return true;
}

/* kernel/signal.c's rules for a call that a handler interrupts. */
bool signal_wants_restart(struct gate_tcb *tcb, long ret)
{
	int sig = tcb->pending[0].si_signo;

	if (ret == -ERESTARTNOINTR)
		return true;
	return ret == -ERESTARTSYS && (tcb->sighand->action[sig].flags & SA_RESTART);
}

bool signal_late(struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();

	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);	/* who is interrupted looks itself */
		return false;
	}
	if (READ_ONCE(tcb->stop))
		stop_park();
	signal_quiet(tcb);		/* one that is noted behind this is looked for again */
	if (READ_ONCE(tcb->npending))
		signal_deliver(uc);
	return true;
}

/* ---- the host's handlers ---- */

/*
 * Killed in a handler, the thread takes with it what that has interrupted. Of kernel code, which others
 * are to go on with (the image's adopt.c), the registers are therefore put where they can be found. True: so they were.
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

void on_signal(int sig, siginfo_t *info, struct ucontext *uc)
{
	bool lent;

	info->si_signo = sig;
	if (sig == SIGCONT && unlikely(sigstop_continued(info, uc)))
		return;
	lent = lend(uc);
	handle(info, uc);
	take_back(lent);
	if (default_is_stop(sig))
		sigstop_taken();
}

static void on_sigsys(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	info->si_signo = sig;
	if (info->si_code != SYS_DISPATCH) {
		if (likely(!signal_newborn(info, uc)))
			handle(info, uc);
		return;
	}
	if (unlikely(info->si_arch != AUDIT_ARCH_X86_64)) {
		static u32 said;

		/* int $0x80: its numbers and registers are not ours. */
		if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
			gate_warn("a 32-bit system call (int $0x80) from a 64-bit program: not supported");
		sc->rax = -ENOSYS;
		return;
	}
	count(COUNT_TRAPS);
	patch_trap(sc->rip, sc->rax);
	sud_call(uc);
}

/* The program dies as by SIGKILL: at once, or as soon as it is out of here. */
static void killed(struct ucontext *uc)
{
	const siginfo_t info = { .si_signo = SIGKILL };

	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);
		note(&info, uc);
	} else {
		signal_deliver_one(uc, &info);
	}
}

static void fault(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	u64 rip = sc->rip;

	info->si_signo = sig;
	if (from_outside(info)) {
		if (unlikely(signal_newborn(info, uc)))
			return;
		if (unlikely(limits_is_death(info)))
			killed(uc);
		else if (!stop_signal(info) && !limits_is_mark(info))
			handle(info, uc);
		else if (!gate_tcb()->npending)
			hide_eintr(sc);
		return;
	}
	if (SIGBIT(sig) & SIG_CPU) {
		/* SIGTRAP in here is of a program that steps through itself (EFLAGS.TF). */
		if (sig != SIGTRAP && in_image(rip))
			crash(info, uc, "the node's kernel", (u64)gate.region);
		if (sig != SIGTRAP && in_gate(rip))
			crash(info, uc, "the gate", RING3_GATE_BASE);
		handle(info, uc);
		return;
	}
	/*
	 * The program has set EFLAGS.AC, which the way into Linux would clear: here it is still set in
	 * kernel code, which is not aligned. The program has it no more after this call.
	 */
	if (unlikely(sc->trapno == ALIGNMENT_CHECK) && (in_image(rip) || in_gate(rip))) {
		static u32 said;

		sc->eflags &= ~EFLAGS_AC;
		if (!__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
			gate_warn("a call with EFLAGS.AC set: cleared, in the program too");
		return;
	}
	if (unlikely(sc->trapno == GENERAL_PROTECTION) && in_gate(rip) && tsc_read(sc))
		return;
	if (in(rip, gate_copy_start, gate_copy_end)) {
		sc->rip = (u64)gate_copy_fault;
		return;
	}
	if (in_image(rip)) {
		bool was_well = READ_ONCE(gate.region->state) < RING3_POISONED;
		u64 to = gate.fixup(rip);

		if (was_well && READ_ONCE(gate.region->state) == RING3_POISONED)
			oops_trace(uc);
		if (!to)
			crash(info, uc, "the node's kernel", (u64)gate.region);
		sc->rip = to;
		return;
	}
	if (rip == (u64)gate_trap_deliver) {
		struct gate_tcb *tcb = gate_tcb();

		count(COUNT_HLT);
		sc->rip = gate_thread()->gate[WORD_RESUME];
		signal_mask_back(tcb, uc);
		signal_deliver(uc);
		return;
	}
	if (rip == (u64)gate_trap_redo) {
		count(COUNT_HLT);
		sc->rip = gate_thread()->gate[WORD_RESUME];
		/* One that was noted on the way here keeps the others off till it is delivered; the program's are in uc. */
		signal_set_mask(uc->uc_sigmask);
		sud_call(uc);
		return;
	}
	if (in_gate(rip) && stop_ending()) {
		stop_park();	/* for good: what it was about has been given back */
		return;
	}
	if (in_gate(rip))
		crash(info, uc, "the gate", RING3_GATE_BASE);
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
	bool lent = lend(uc);

	fault(sig, info, uc);
	take_back(lent);
}

/* ---- dispositions ---- */

/* The gate has a handler for it though the program has none. */
static bool caught_by_default(int sig)
{
	return default_is_death(sig) || default_is_stop(sig) || sig == SIGCONT;
}

/* What the host is told where the program wants *want, which processes may have in common. */
static struct host_sigaction host_action(const struct host_sigaction *want, int sig, bool shared)
{
	struct host_sigaction act = {
		.handler = (u64)on_signal,
		.flags = SA_SIGINFO | SA_ONSTACK | SA_RESTORER | (want->flags & SA_KEPT),
		.restorer = (u64)gate_restorer,
		.mask = ~SIG_FORCED,
	};

	if (sig == SIGSYS) {
		act.handler = (u64)on_sigsys;
		act.flags |= SA_NODEFER;
		act.mask = 0;
	} else if (SIGBIT(sig) & SIG_FORCED) {
		act.handler = (u64)on_fault;
		act.flags |= SA_NODEFER;
	} else if (want->handler == (u64)SIG_IGN ||
		   (want->handler == (u64)SIG_DFL && !caught_by_default(sig))) {
		if (shared) {
			/* The next one may be wanted, by who is not told on the host. */
			act.flags |= SA_RESTART;
			if (sig == SIGCHLD && want->handler == (u64)SIG_IGN)
				act.flags |= SA_NOCLDWAIT;
			return act;
		}
		act.handler = want->handler;
		act.flags &= SA_KEPT;
		act.mask = 0;
	} else if (want->handler == (u64)SIG_DFL) {
		act.flags |= SA_RESTART;
		if (default_is_stop(sig)) {
			act.handler = (u64)gate_on_stop;
			act.mask &= ~SIGBIT(SIGCONT);
		}
	}
	return act;
}

u64 signal_host_install(struct gate_sighand *sh, int sig)
{
	struct host_sigaction act = host_action(&sh->action[sig], sig, sh->shared), old = { 0 };

	host_syscall4(__NR_rt_sigaction, sig, (long)&act, (long)&old, 8);
	return old.handler;
}

/*
 * Is the host to be told the same for both? Not of signals that it ignores: to be told once more
 * makes it forget those that are pending.
 */
bool signal_host_same(const struct host_sigaction *a, const struct host_sigaction *b, int sig)
{
	struct host_sigaction x = host_action(a, sig, false), y = host_action(b, sig, false);

	return x.handler > (u64)SIG_IGN && !memcmp(&x, &y, sizeof(x));
}

void signal_install(struct gate_sighand *sh)
{
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++)
		if (caught_by_default(sig) || sh->action[sig].handler > (u64)SIG_IGN)
			signal_host_install(sh, sig);
}

void signal_share(struct gate_sighand *sh)
{
	int sig;

	gate_lock(&sh->lock);
	if (!sh->shared) {
		sh->shared = 1;
		for (sig = 1; sig <= SIGNALS; sig++)
			if (ignored(sh, sig) && sig != SIGKILL && sig != SIGSTOP)
				signal_host_install(sh, sig);
	}
	gate_unlock(&sh->lock);
}

/* Forced signals that are blocked and pending on the host become what they are in here: that of tcb->forced_pending. */
static void take_forced(struct gate_tcb *tcb, u64 set)
{
	struct timespec none = { 0 };
	siginfo_t info;
	long sig;

	while ((sig = host_syscall4(__NR_rt_sigtimedwait, (long)&set, (long)&info, (long)&none, 8)) > 0) {
		tcb->forced_info[forced_index(sig)] = info;
		tcb->forced_pending |= SIGBIT(sig);
	}
}

/*
 * Before exec the host is told which of the forced signals the program ignores and has blocked, for the new program to
 * inherit, and of all signals where it does not know that from before; it gets those that are pending, too. After one
 * that failed, that the gate wants them.
 */
void signal_exec(bool begins)
{
	struct gate_tcb *tcb = gate_tcb();
	struct host_sigaction ignore = { .handler = (u64)SIG_IGN };
	u64 blocked = tcb->forced_mask & SIG_FORCED;
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++) {
		if ((!(SIGBIT(sig) & SIG_FORCED) && !tcb->sighand->shared) ||
		    tcb->sighand->action[sig].handler != (u64)SIG_IGN)
			continue;
		if (begins)
			host_syscall4(__NR_rt_sigaction, sig, (long)&ignore, 0, 8);
		else
			signal_host_install(tcb->sighand, sig);
	}
	if (!blocked)
		return;
	if (begins) {
		host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, (long)&blocked, 0, 8);
		for (sig = 1; sig <= SIGNALS; sig++)
			if (tcb->forced_pending & blocked & SIGBIT(sig))
				raise_info(&tcb->forced_info[forced_index(sig)]);
	} else {
		take_forced(tcb, blocked);
		host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&blocked, 0, 8);
	}
}

/* After the host's exec: dispositions are default or ignored. */
void signal_start(void)
{
	struct gate_sighand *sh = &first_sighand;
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0, set;
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++) {
		struct host_sigaction old = { 0 };
		u64 was;

		if (sig == SIGKILL || sig == SIGSTOP)
			continue;
		if (ignored(sh, sig) && !caught_by_default(sig)) {
			/* Is as it has to be, and to be told so would make the host forget those that are pending. */
			host_syscall4(__NR_rt_sigaction, sig, 0, (long)&old, 8);
			sh->action[sig].handler = old.handler;
			continue;
		}
		was = signal_host_install(sh, sig);
		if (was == (u64)SIG_IGN) {
			sh->action[sig].handler = was;
			signal_host_install(sh, sig);
		}
	}
	tcb->sighand = sh;
	tcb->alt.ss_flags = SS_DISABLE;
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
	set = tcb->forced_mask = mask & SIG_FORCED;
	if (unlikely(set)) {
		take_forced(tcb, set);
		host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, 8);
	}
}

