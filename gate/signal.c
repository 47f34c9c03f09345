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
 *   program's stack (deliver_one), the interrupted context is pointed at the
 *   program's handler, and returning from the gate's handler starts it. When the
 *   program's handler ends, its rt_sigreturn comes back as any other call does
 *   (gate_sigreturn). A handler that never returns (siglongjmp) costs nothing.
 *
 * in the gate or the image: the signal is noted and all others are blocked in the
 *   interrupted context (note). thread->sigpending makes waits end early with an
 *   -ERESTART* code; on its way out the thread delivers (call.c). Three windows need
 *   care, since a thread in them has looked already: the host call (gate_host), the way out
 *   of entry.S, and the tail of a stub. The handler moves the thread out of them.
 *
 * Signals whose default is death are caught too: a thread must not die in the
 * middle of kernel code that others share. They kill on the way out (fatal()),
 * after the node has been told. So are those that stop the process (SIGTSTP and its like;
 * SIGSTOP can't be): a thread stopped in kernel code would hold up the node.
 *
 * SIGSYS, SIGSEGV and SIGBUS are never blocked on the host (internal.h); what the
 * program thinks of them is kept in forced_mask.
 */
#include "internal.h"

#define SA_KEPT		(SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)
#define SYS_DISPATCH	2	/* si_code: SYS_USER_DISPATCH */
#define FLAG_TF		0x100
#define FLAG_DF		0x400
#define FLAG_RF		0x10000
#define RED_ZONE	128
#define AUTODISARM	(1u << 31)
#define MIN_ALTSTACK	2048	/* MINSIGSTKSZ */

/* The extended part of a signal frame's FP state (asm/sigcontext.h). */
#define FP_MAGIC1	0x46505853U
#define FP_MXCSR	24
#define FP_SW_MAGIC	464
#define FP_SW_SIZE	468
#define FP_XFEATURES	512
#define XFEATURE_PKRU	(1UL << 9)

struct sigframe {
	u64 pretcode;
	struct ucontext uc;
	siginfo_t info;
};

static struct gate_sighand first_sighand;

static bool default_is_death(int sig)
{
	switch (sig) {
	case SIGCHLD:
	case SIGURG:
	case SIGWINCH:
	case SIGCONT:
	case SIGSTOP:
	case SIGKILL:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return false;
	}
	return true;
}

static bool default_is_stop(int sig)
{
	return sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

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

static bool from_outside(const siginfo_t *info)
{
	return info->si_code <= 0;
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

static void raise_info(siginfo_t *info)
{
	host_syscall4(__NR_rt_tgsigqueueinfo, host_syscall0(__NR_getpid),
		      host_syscall0(__NR_gettid), info->si_signo, (long)info);
}

static void raise_plain(int sig)
{
	host_syscall3(__NR_tgkill, host_syscall0(__NR_getpid), host_syscall0(__NR_gettid), sig);
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
		info.si_signo = t->sigq[i].signo;
		info.si_code = t->sigq[i].code;
		if (info.si_signo < 1 || info.si_signo > SIGNALS)
			continue;
		if (info.si_code > 0) {		/* POLL_IN and so on */
			info.si_fd = t->sigq[i].fd;
			info.si_band = t->sigq[i].band;
		} else {
			info.si_pid = host_syscall0(__NR_getpid);
			info.si_uid = host_syscall0(__NR_getuid);
		}
		raise_info(&info);
	}
	WRITE_ONCE(t->nsig, 0);
}

/* ---- death ---- */

static void host_default(int sig)
{
	struct host_sigaction dfl = { 0 };

	host_syscall4(__NR_rt_sigaction, sig, (long)&dfl, 0, 8);
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
 * The program dies of this signal, in context uc so that a core file shows it. The node
 * is told first, while no thread of ours is in kernel code by our doing.
 */
static void fatal(const siginfo_t *info, struct ucontext *uc)
{
	siginfo_t copy = *info;
	int sig = info->si_signo;

	stop_others();
	image_call1(RING3_NR_EXIT_GROUP, sig);
	host_default(sig);
	uc->uc_sigmask &= ~SIGBIT(sig);
	if (from_outside(info) || !(SIGBIT(sig) & SIG_FORCED))
		raise_info(&copy);
	/* A fault of the program's happens again on return. */
}

static u64 host_install(struct gate_sighand *sh, int sig);

/*
 * The default of SIGTSTP and its like: all threads stop, none of them inside the node.
 * Comes back after SIGCONT.
 */
static void stop_process(int sig)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	u64 set = SIGBIT(sig), old;

	stop_others();
	host_default(sig);
	raise_plain(sig);
	host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, (long)&old, 8);
	host_syscall4(__NR_rt_sigprocmask, SIG_SETMASK, (long)&old, 0, 8);
	host_install(sh, sig);
	stop_undo();
}

/* ---- delivery ---- */

static bool on_altstack(const struct gate_tcb *tcb, u64 sp)
{
	if (tcb->alt.ss_flags & AUTODISARM)
		return false;
	return sp > (u64)tcb->alt.ss_sp && sp - (u64)tcb->alt.ss_sp <= tcb->alt.ss_size;
}

/* A handler starts with initial FP state, but its own protection keys. */
static void init_fp(char *fp)
{
	*(u32 *)(fp + FP_MXCSR) = 0x1f80;
	if (*(u32 *)(fp + FP_SW_MAGIC) == FP_MAGIC1)
		*(u64 *)(fp + FP_XFEATURES) &= XFEATURE_PKRU;
}

static long push_frame(struct ucontext *uc, const siginfo_t *info, const struct host_sigaction *act)
{
	struct gate_tcb *tcb = gate_tcb();
	struct sigcontext *sc = &uc->uc_mcontext;
	char *fp = (char *)sc->fpstate;
	u64 fp_size = 0, sp, fp_at, at;
	struct sigframe frame;

	if ((act->flags & SA_ONSTACK) && tcb->alt.ss_size && !on_altstack(tcb, sc->rsp))
		sp = (u64)tcb->alt.ss_sp + tcb->alt.ss_size;
	else
		sp = sc->rsp - RED_ZONE;

	if (fp)
		fp_size = *(u32 *)(fp + FP_SW_MAGIC) == FP_MAGIC1 ? *(u32 *)(fp + FP_SW_SIZE) : 512;
	fp_at = (sp - fp_size) & ~63UL;
	at = ((fp_at - sizeof(frame)) & ~15UL) - 8;
	if (on_altstack(tcb, sc->rsp) && at <= (u64)tcb->alt.ss_sp)
		return -EFAULT;		/* the program's altstack is full */

	frame.pretcode = act->restorer;
	frame.uc = *uc;
	frame.uc.uc_link = NULL;
	frame.uc.uc_stack = tcb->alt;
	frame.uc.uc_sigmask = uc->uc_sigmask | tcb->forced_mask;
	frame.uc.uc_mcontext.fpstate = fp ? (void *)fp_at : NULL;
	frame.info = *info;
	if (fp && gate_copy_out((void *)fp_at, fp, fp_size))
		return -EFAULT;
	if (gate_copy_out((void *)at, &frame, sizeof(frame)))
		return -EFAULT;

	if (tcb->alt.ss_flags & AUTODISARM)
		tcb->alt = (stack_t){ .ss_flags = SS_DISABLE };
	if (fp)
		init_fp(fp);
	sc->rdi = info->si_signo;
	sc->rsi = at + offsetof(struct sigframe, info);
	sc->rdx = at + offsetof(struct sigframe, uc);
	sc->rax = 0;
	sc->rsp = at;
	sc->rip = act->handler;
	sc->eflags &= ~(u64)(FLAG_TF | FLAG_DF | FLAG_RF);
	return 0;
}

static void deliver_one(struct ucontext *uc, const siginfo_t *info)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_sighand *sh = tcb->sighand;
	int sig = info->si_signo;
	bool forced = (SIGBIT(sig) & SIG_FORCED) && !from_outside(info);
	struct host_sigaction act;
	u64 block;

	if (SIGBIT(sig) & SIG_FORCED & tcb->forced_mask) {
		if (forced)
			fatal(info, uc);
		else
			tcb->forced_pending |= SIGBIT(sig);
		return;
	}
	gate_lock(&sh->lock);
	act = sh->action[sig];
	if ((act.flags & SA_RESETHAND) && act.handler > (u64)SIG_IGN) {
		sh->action[sig].handler = (u64)SIG_DFL;
		host_install(sh, sig);
	}
	gate_unlock(&sh->lock);

	if (act.handler == (u64)SIG_IGN && !forced)
		return;
	if (act.handler <= (u64)SIG_IGN) {
		if (default_is_death(sig))
			fatal(info, uc);
		else if (default_is_stop(sig))
			stop_process(sig);
		return;
	}
	if (push_frame(uc, info, &act)) {
		siginfo_t segv = { .si_signo = SIGSEGV, .si_code = SI_KERNEL };

		fatal(&segv, uc);
		raise_plain(SIGSEGV);
		return;
	}
	block = act.mask | (act.flags & SA_NODEFER ? 0 : SIGBIT(sig));
	uc->uc_sigmask |= block & ~SIG_FORCED;
	tcb->forced_mask |= block & SIG_FORCED;
	count(COUNT_SIGNALS);
}

void signal_deliver(struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();
	struct ring3_thread *t = gate_thread();
	siginfo_t list[PENDING_MAX];
	u32 n = tcb->npending, i;

	memcpy(list, tcb->pending, n * sizeof(list[0]));
	tcb->npending = 0;
	WRITE_ONCE(t->sigpending, 0);
	__atomic_fetch_and(&t->word, ~RING3_WORD_SIGNAL, __ATOMIC_SEQ_CST);
	for (i = 0; i < n; i++)
		deliver_one(uc, &list[i]);
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
		return;		/* three forced ones and one other: can't happen */
	if (!tcb->npending)
		tcb->saved_mask = tcb->temp_active ? tcb->temp_orig : uc->uc_sigmask;
	tcb->pending[tcb->npending++] = *info;
	uc->uc_sigmask = ~SIG_FORCED;
	WRITE_ONCE(t->sigpending, 1);
	__atomic_fetch_or(&t->word, RING3_WORD_SIGNAL, __ATOMIC_SEQ_CST);
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
	}
}

static void handle(const siginfo_t *info, struct ucontext *uc)
{
	patch_leave(uc);
	if (in_gate(uc->uc_mcontext.rip)) {
		leave_windows(uc);
		note(info, uc);
	} else {
		deliver_one(uc, info);
	}
}

/*
 * Are there noted signals that mean something to the program? Drops the others (their
 * disposition has changed since) and gives the mask back.
 */
bool signal_pending(struct gate_tcb *tcb)
{
	struct ring3_thread *t = gate_thread();
	u32 i;

	for (i = 0; i < tcb->npending; i++) {
		int sig = tcb->pending[i].si_signo;
		u64 handler = tcb->sighand->action[sig].handler;

		if (handler > (u64)SIG_IGN || (handler == (u64)SIG_DFL && default_is_death(sig)))
			return true;
		if (handler == (u64)SIG_DFL && default_is_stop(sig))
			stop_process(sig);
	}
	WRITE_ONCE(t->sigpending, 0);
	__atomic_fetch_and(&t->word, ~RING3_WORD_SIGNAL, __ATOMIC_SEQ_CST);
	if (tcb->npending) {
		tcb->npending = 0;
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

/* ---- the host's handlers ---- */

static void on_signal(int sig, siginfo_t *info, struct ucontext *uc)
{
	info->si_signo = sig;
	handle(info, uc);
}

static void on_sigsys(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;

	info->si_signo = sig;
	if (info->si_code != SYS_DISPATCH) {
		if (!stop_signal(info))
			handle(info, uc);
		return;
	}
	count(COUNT_TRAPS);
	patch_trap(sc->rip, sc->rax);
	sud_call(uc);
}

static void on_fault(int sig, siginfo_t *info, struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	u64 rip = sc->rip;

	info->si_signo = sig;
	if (from_outside(info)) {
		handle(info, uc);
		return;
	}
	if (in(rip, gate_copy_start, gate_copy_end)) {
		sc->rip = (u64)gate_copy_fault;
		return;
	}
	if (in_image(rip)) {
		u64 to = gate.fixup(rip);

		if (!to)
			crash(info, uc, "the node's kernel", (u64)gate.region);
		sc->rip = to;
		return;
	}
	if (rip == (u64)gate_trap_deliver) {
		struct gate_tcb *tcb = gate_tcb();

		count(COUNT_HLT);
		sc->rip = gate_thread()->gate[WORD_RESUME];
		if (tcb->npending)
			uc->uc_sigmask = tcb->saved_mask;
		signal_deliver(uc);
		return;
	}
	if (rip == (u64)gate_trap_redo) {
		count(COUNT_HLT);
		sc->rip = gate_thread()->gate[WORD_RESUME];
		signal_set_mask(uc->uc_sigmask);
		sud_call(uc);
		return;
	}
	if (in_gate(rip))
		crash(info, uc, "the gate", RING3_GATE_BASE);

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
		deliver_one(uc, info);
	}
}

/* ---- dispositions ---- */

/* Returns the handler that the host had before. */
static u64 host_install(struct gate_sighand *sh, int sig)
{
	struct host_sigaction old = { 0 }, *want = &sh->action[sig];
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
		   (want->handler == (u64)SIG_DFL && !default_is_death(sig) &&
		    !default_is_stop(sig))) {
		act.handler = want->handler;
		act.flags &= SA_KEPT;
		act.mask = 0;
	} else if (want->handler == (u64)SIG_DFL) {
		act.flags |= SA_RESTART;
	}
	host_syscall4(__NR_rt_sigaction, sig, (long)&act, (long)&old, 8);
	return old.handler;
}

void signal_install(struct gate_sighand *sh)
{
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++)
		if (default_is_death(sig) || default_is_stop(sig) || sh->action[sig].handler > (u64)SIG_IGN)
			host_install(sh, sig);
}

/* After the host's exec: dispositions are default or ignored. */
void signal_start(void)
{
	struct gate_sighand *sh = &first_sighand;
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0, set;
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++) {
		u64 was = host_install(sh, sig);

		if (was == (u64)SIG_IGN) {
			sh->action[sig].handler = was;
			host_install(sh, sig);
		}
	}
	tcb->sighand = sh;
	tcb->alt.ss_flags = SS_DISABLE;
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, 8);
	tcb->forced_mask = mask & SIG_FORCED;
	set = SIG_FORCED;
	host_syscall4(__NR_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, 8);
}

/* ---- the program's calls ---- */

long gate_sigaction(struct gate_regs *r)
{
	struct gate_sighand *sh = gate_tcb()->sighand;
	struct host_sigaction act, old;
	int sig = r->a[0];

	if (r->a[3] != sizeof(u64))
		return -EINVAL;
	if (sig < 1 || sig > SIGNALS || (r->a[1] && (sig == SIGKILL || sig == SIGSTOP)))
		return -EINVAL;
	if (r->a[1] && gate_copy_in(&act, (void *)r->a[1], sizeof(act)))
		return -EFAULT;

	gate_lock(&sh->lock);
	old = sh->action[sig];
	if (r->a[1]) {
		act.mask &= ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
		sh->action[sig] = act;
		host_install(sh, sig);
	}
	gate_unlock(&sh->lock);
	if (r->a[2] && gate_copy_out((void *)r->a[2], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}

static void release_forced(struct gate_tcb *tcb)
{
	u64 ready = tcb->forced_pending & ~tcb->forced_mask;
	int sig;

	if (likely(!ready))
		return;
	tcb->forced_pending &= ~ready;
	for (sig = 1; sig <= SIGNALS; sig++)
		if (ready & SIGBIT(sig))
			raise_plain(sig);
}

long gate_sigprocmask(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	int how = r->a[0];
	u64 set = 0, host_set, old = 0, seen, mask;
	long ret;

	if (r->a[3] != sizeof(u64))
		return -EINVAL;
	if (r->a[1] && gate_copy_in(&set, (void *)r->a[1], sizeof(set)))
		return -EFAULT;
	set &= ~(SIGBIT(SIGKILL) | SIGBIT(SIGSTOP));
	host_set = set & ~SIG_FORCED;
	/* Through gate_host: with a noted signal the host's mask is not the program's. */
	ret = gate_host(__NR_rt_sigprocmask, how, r->a[1] ? (long)&host_set : 0, (long)&old,
			sizeof(u64), 0, 0);
	if (ret)
		return ret;
	seen = old | tcb->forced_mask;
	if (r->a[1]) {
		mask = how == SIG_BLOCK ? seen | set : how == SIG_UNBLOCK ? seen & ~set : set;
		tcb->forced_mask = mask & SIG_FORCED;
		if (r->uctx)
			r->uctx->uc_sigmask = mask & ~SIG_FORCED;
		release_forced(tcb);
	}
	if (r->a[2] && gate_copy_out((void *)r->a[2], &seen, sizeof(seen)))
		return -EFAULT;
	return 0;
}

static u64 program_sp(const struct gate_regs *r)
{
	return r->uctx ? r->uctx->uc_mcontext.rsp : gate_thread()->gate[WORD_SP];
}

long gate_sigaltstack(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	bool inside = on_altstack(tcb, program_sp(r));
	stack_t new, old = tcb->alt;
	u32 mode;

	if (!old.ss_size)
		old.ss_flags = SS_DISABLE | (old.ss_flags & AUTODISARM);
	else
		old.ss_flags = (inside ? SS_ONSTACK : 0) | (old.ss_flags & AUTODISARM);

	if (r->a[0]) {
		if (gate_copy_in(&new, (void *)r->a[0], sizeof(new)))
			return -EFAULT;
		if (inside)
			return -EPERM;
		mode = new.ss_flags & ~AUTODISARM;
		if (mode != SS_DISABLE && mode != SS_ONSTACK && mode)
			return -EINVAL;
		if (mode == SS_DISABLE) {
			new.ss_sp = NULL;
			new.ss_size = 0;
		} else if (new.ss_size < MIN_ALTSTACK) {
			return -ENOMEM;
		}
		tcb->alt = new;
	}
	if (r->a[1] && gate_copy_out((void *)r->a[1], &old, sizeof(old)))
		return -EFAULT;
	return 0;
}

/*
 * The end of a handler of the program's. Does not return: the host loads the
 * frame, which names our stack instead of the program's and no forced signal.
 */
long gate_sigreturn(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	struct ucontext *at = (void *)r->uctx->uc_mcontext.rsp;
	struct ucontext uc;

	signal_block_all();
	if (tcb->npending)
		return -ERESTARTNOINTR;	/* its handler first, then again */
	if (gate_copy_in(&uc, at, sizeof(uc)))
		goto bad;
	tcb->forced_mask = uc.uc_sigmask & SIG_FORCED;
	release_forced(tcb);
	if (tcb->npending)
		return -ERESTARTNOINTR;	/* the frame is still as it was */
	tcb->alt = uc.uc_stack;
	uc.uc_sigmask &= ~SIG_FORCED;
	uc.uc_stack = (stack_t){ .ss_sp = tcb->altstack, .ss_size = ALTSTACK_BYTES };
	if (gate_copy_out(&at->uc_stack, &uc.uc_stack, sizeof(uc.uc_stack)) ||
	    gate_copy_out(&at->uc_sigmask, &uc.uc_sigmask, sizeof(uc.uc_sigmask)))
		goto bad;
	gate_resume(at);
bad:
	raise_plain(SIGSEGV);		/* as the kernel for a bad frame */
	return 0;
}

void gate_sigmask_begin(u64 set)
{
	struct gate_tcb *tcb = gate_tcb();
	u64 mask = 0;

	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask));
	if (READ_ONCE(tcb->npending))
		return;		/* the call will end at once */
	tcb->temp_orig = mask;
	WRITE_ONCE(tcb->temp_active, 1);
	barrier();
	set &= ~SIG_FORCED;
	gate_host(__NR_rt_sigprocmask, SIG_SETMASK, (long)&set, 0, sizeof(set), 0, 0);
}

void gate_sigmask_end(void)
{
	struct gate_tcb *tcb = gate_tcb();

	if (!tcb->temp_active)
		return;
	/* With a noted signal, all stay blocked until it is delivered. */
	gate_host(__NR_rt_sigprocmask, SIG_SETMASK, (long)&tcb->temp_orig, 0, sizeof(u64), 0, 0);
	barrier();
	WRITE_ONCE(tcb->temp_active, 0);
}
