// SPDX-License-Identifier: GPL-2.0
/*
 * sigframe.c - the effect of a signal on the program: its handler's frame, or the default action
 *
 * All functions work on a context of the program, which the host made for a handler of the gate. The frame is the
 * one that the kernel would have built, so handlers can read and change it, and unwinders know it.
 */
#include "signal/signals.h"

#define FLAG_TF		0x100
#define FLAG_DF		0x400
#define FLAG_RF		0x10000
#define RED_ZONE	128

#define FP_MXCSR	24
#define FP_XFEATURES	512
#define XFEATURE_PKRU	(1UL << 9)

struct sigframe {
	u64 pretcode;
	struct ucontext uc;
	siginfo_t info;
};

/* ---- defaults ---- */

/*
 * The program dies of this signal, in context uc, so that a core file shows that. Before that, the process ends in
 * the node, while none of its threads is in kernel code.
 */
static void fatal(const siginfo_t *info, struct ucontext *uc)
{
	stack_t alt = tcb_call_altstack(gate_tcb());
	siginfo_t copy = *info;
	int sig = info->si_signo;

	stop_others();
	vfork_done(gate_thread());
	host_syscall2(__NR_sigaltstack, (long)&alt, 0);		/* a fault in the image must not overwrite uc */
	image_call1(RING3_NR_EXIT_GROUP, RING3_BY_SIGNAL | sig);
	host_default(sig);
	uc->uc_sigmask &= ~SIGBIT(sig);
	if (unlikely(is_init()) && (sig == SIGSYS || sig == SIGTRAP || sig == SIGKILL))
		host_syscall1(__NR_exit_group, 128 + sig);	/* the signal, raised again, has had no effect */
	if (from_outside(info) || sig == SIGSYS || sig == SIGTRAP || !(SIGBIT(sig) & SIG_FORCED))
		raise_info(&copy);
	/* For a fault of the program: it happens again on return. */
}

/* ---- the program's handlers ---- */

bool signal_on_altstack(const struct gate_tcb *tcb, u64 sp)
{
	if (tcb->alt.ss_flags & SS_AUTODISARM_BIT)
		return false;
	return sp > (u64)tcb->alt.ss_sp && sp - (u64)tcb->alt.ss_sp <= tcb->alt.ss_size;
}

/*
 * SIGIO and SIGURG of the node mostly come by the keeper, and the host lets no process send another one POLL_* or
 * SI_KERNEL. So they carry SI_SIGIO. The original code follows from the band (fs/fcntl.c's band_table), which is 0
 * without F_SETSIG.
 */
static void name_band(siginfo_t *info)
{
	static const u16 bands[] = { 0, 0x041, 0x304, 0x441, 0x008, 0x082, 0x018 };	/* POLL_IN is 1 */
	u32 code;

	if (!info->si_band) {
		info->si_code = SI_KERNEL;
		info->si_fd = 0;
		return;
	}
	for (code = 1; code < sizeof(bands) / sizeof(*bands); code++)
		if (info->si_band == bands[code])
			info->si_code = code;
}

/* A handler starts with initial FP state, but with the thread's protection keys. */
static void init_fp(char *fp)
{
	*(u32 *)(fp + FP_MXCSR) = 0x1f80;
	if (*(u32 *)(fp + FP_SW_MAGIC) == FP_XSTATE_MAGIC1)
		*(u64 *)(fp + FP_XFEATURES) &= XFEATURE_PKRU;
}

static long push_frame(struct ucontext *uc, const siginfo_t *info, const struct host_sigaction *act)
{
	struct gate_tcb *tcb = gate_tcb();
	struct sigcontext *sc = &uc->uc_mcontext;
	char *fp = (char *)sc->fpstate;
	bool alt = signal_on_altstack(tcb, sc->rsp);
	u64 fp_size = 0, sp, fp_at, at;
	struct sigframe frame;

	if ((act->flags & SA_ONSTACK) && tcb->alt.ss_size && !alt) {
		alt = true;
		sp = (u64)tcb->alt.ss_sp + tcb->alt.ss_size;
	} else {
		sp = sc->rsp - RED_ZONE;
	}

	if (fp)
		fp_size = fp_bytes(fp);
	fp_at = (sp - fp_size) & ~63UL;
	at = ((fp_at - sizeof(frame)) & ~15UL) - 8;
	if (alt && at <= (u64)tcb->alt.ss_sp)
		return -EFAULT;		/* the program's alternate stack is full, or too small */

	frame.pretcode = act->restorer;
	frame.uc = *uc;
	frame.uc.uc_link = NULL;
	frame.uc.uc_stack = tcb->alt;
	frame.uc.uc_sigmask = uc->uc_sigmask | tcb->forced_mask;
	frame.uc.uc_mcontext.fpstate = fp ? (void *)fp_at : NULL;
	frame.info = *info;
	if (unlikely(info->si_code == SI_SIGIO))
		name_band(&frame.info);
	if (fp && gate_copy_out((void *)fp_at, fp, fp_size))
		return -EFAULT;
	if (gate_copy_out((void *)at, &frame, sizeof(frame)))
		return -EFAULT;

	if (tcb->alt.ss_flags & SS_AUTODISARM_BIT)
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

void signal_deliver_one(struct ucontext *uc, const siginfo_t *info)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_sighand *sh = tcb->sighand;
	int sig = info->si_signo;
	bool forced = (SIGBIT(sig) & SIG_FORCED) && !from_outside(info);
	struct host_sigaction act;
	u64 block;

	if (SIGBIT(sig) & SIG_FORCED & tcb->forced_mask) {
		if (forced) {
			fatal(info, uc);
		} else if (!(tcb->forced_pending & SIGBIT(sig))) {
			tcb->forced_info[forced_index(sig)] = *info;
			tcb->forced_pending |= SIGBIT(sig);
		}
		return;
	}
	gate_lock(&sh->lock);
	act = sh->action[sig];
	if ((act.flags & SA_RESETHAND) && act.handler > (u64)SIG_IGN) {
		sh->action[sig].handler = (u64)SIG_DFL;
		signal_host_install(sh, sig);
	}
	gate_unlock(&sh->lock);

	if (act.handler == (u64)SIG_IGN && !forced)
		return;
	if (act.handler <= (u64)SIG_IGN) {
		if (!forced && sig != SIGKILL && unlikely(is_init()))
			return;
		if (default_is_death(sig))
			fatal(info, uc);
		else if (default_is_stop(sig))
			sigstop_process(sig);
		return;
	}
	if (push_frame(uc, info, &act)) {
		siginfo_t segv = { .si_signo = SIGSEGV, .si_code = SI_KERNEL };

		/* As force_sigsegv(): the handler of SIGSEGV may use another stack. */
		if (sig != SIGSEGV && sh->action[SIGSEGV].handler > (u64)SIG_IGN &&
		    !(tcb->forced_mask & SIGBIT(SIGSEGV))) {
			signal_deliver_one(uc, &segv);
			return;
		}
		fatal(&segv, uc);
		if (unlikely(is_init()))
			host_syscall1(__NR_exit_group, 128 + SIGSEGV);
		raise_plain(SIGSEGV);
		return;
	}
	/* The handler has ended the interrupted call, if there was one. */
	tcb->restart_node = 0;
	tcb->restart.go_on = NULL;
	/*
	 * As on Linux: the handler returns to the mask from before the interrupted call, and starts with the call's
	 * temporary mask.
	 */
	if (unlikely(tcb->temp_noted)) {
		uc->uc_sigmask = tcb->temp_set & ~SIG_FORCED;
		tcb->forced_mask = tcb->temp_set & SIG_FORCED;
		tcb->temp_noted = 0;
	}
	block = act.mask | (act.flags & SA_NODEFER ? 0 : SIGBIT(sig));
	uc->uc_sigmask |= block & ~SIG_FORCED;
	tcb->forced_mask |= block & SIG_FORCED;
	count(COUNT_SIGNALS);
}

void signal_deliver(struct ucontext *uc)
{
	struct gate_tcb *tcb = gate_tcb();
	siginfo_t list[PENDING_MAX];
	u32 n, i;

	/* Forced signals may still be noted, by this thread's handlers. */
	do {
		n = READ_ONCE(tcb->npending);
		memcpy(list, tcb->pending, n * sizeof(list[0]));
		signal_quiet(tcb);
	} while (!__atomic_compare_exchange_n(&tcb->npending, &n, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	for (i = 0; i < n; i++)
		signal_deliver_one(uc, &list[i]);
	tcb->temp_noted = 0;
}

