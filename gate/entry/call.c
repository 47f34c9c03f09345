// SPDX-License-Identifier: GPL-2.0
/*
 * call.c - a call of the program: from its call site through the gate and back
 */
#include "signal/signals.h"
#include <asm/prctl.h>

long gate_restart_syscall(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();
	struct gate_restart wait = tcb->restart;

	if (wait.go_on) {
		tcb->restart.go_on = NULL;
		return wait.go_on(r, &wait);
	}
	if (!tcb->restart_node)		/* of a call that a stub made directly, or no call was interrupted */
		return gate_host_regs(r);
	tcb->restart_node = 0;
	return image_call(r->nr, r->a[0], r->a[1], r->a[2], r->a[3], r->a[4], r->a[5]);
}

/* Calls that need the program's whole register context. */
static bool needs_context(const struct gate_regs *r)
{
	switch (r->nr) {
	case __NR_arch_prctl:
		return r->a[0] == ARCH_SET_GS;	/* gate_resume() sets it */
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
	case __NR_rt_sigreturn:
		return true;
	}
	return false;
}

/* From entry.S: a call that it does not handle by itself. */
struct exit_action gate_call(struct gate_regs *r)
{
	r->nr = (u64)(s64)(s32)r->nr;	/* as Linux does: 32 bits, sign-extended */
	stat_call(RING3_STAT_ENTERED);
	if (unlikely(needs_context(r))) {
		gate_thread()->gate[WORD_RESUME] = patch_stub_return(r->stub);
		return (struct exit_action){ 0, EXIT_REDO };
	}
	if (unlikely(seccomp_active(gate_tcb()))) {
		siginfo_t info;
		long ret;

		switch (seccomp_judge(r, patch_stub_return(r->stub), &ret, &info)) {
		case SECCOMP_DOES_CALL:
			break;
		case SECCOMP_DOES_RETURN:
			return (struct exit_action){ ret, EXIT_NORMAL };
		case SECCOMP_DOES_TRAP:	/* the handler needs a context: sud_call() runs the filter again */
			gate_thread()->gate[WORD_RESUME] = patch_stub_return(r->stub);
			return (struct exit_action){ 0, EXIT_REDO };
		}
	}
	return (struct exit_action){ gate_syscall(r), EXIT_NORMAL };
}

/*
 * From entry.S: the call cannot return at once. The node has raised signals, a signal is noted, or the result is a
 * restart code.
 */
struct exit_action gate_exit_work(struct gate_regs *r, long ret)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();

	for (;;) {
		if (READ_ONCE(tcb->stop))
			stop_park();
		if (READ_ONCE(t->nsig))
			signal_drain_node();

		if (signal_pending(tcb)) {
			bool again = signal_wants_restart(tcb, ret);

			t->gate[WORD_RESUME] = again ? patch_stub_site(r->stub) :
						       patch_stub_return(r->stub);
			if (again)
				ret = r->nr;
			else if (is_restart(ret))
				ret = -EINTR;
			return (struct exit_action){ ret, EXIT_DELIVER };
		}
		if (!is_restart(ret))
			return (struct exit_action){ ret, EXIT_NORMAL };

		/* Interrupted, but no handler has run: restart the call. */
		struct gate_regs again = *r;

		if (ret == -ERESTART_RESTARTBLOCK)
			again.nr = __NR_restart_syscall;
		ret = gate_syscall(&again);
	}
}

/*
 * Handles the system call at whose end context uc is. Called by signal handlers. Leaves uc such that rt_sigreturn
 * continues in the program or in its handler.
 */
void sud_call(struct ucontext *uc)
{
	struct sigcontext *sc = &uc->uc_mcontext;
	struct gate_regs r = {
		.nr = (u64)(s64)(s32)sc->rax,
		.a = { sc->rdi, sc->rsi, sc->rdx, sc->r10, sc->r8, sc->r9 },
		.uctx = uc,
	};
	struct gate_tcb *tcb = gate_tcb();
	stack_t alt = tcb_call_altstack(tcb);
	enum seccomp_does does = SECCOMP_DOES_CALL;
	siginfo_t trap;
	bool again;
	long ret = 0;

	/* The signal was noted on the way here, or while the program was started: restore the mask from before it. */
	if (unlikely(tcb->npending))
		signal_mask_back(tcb, uc);
	stat_call(RING3_STAT_TRAPPED);
	/* A call without a handler stays on this stack. */
	if (gate_class(r.nr) != CLASS_DIRECT)
		host_syscall2(__NR_sigaltstack, (long)&alt, 0);
	WRITE_ONCE(tcb->uctx, uc);
	if (unlikely(seccomp_active(tcb)))
		does = seccomp_judge(&r, sc->rip, &ret, &trap);
	if (likely(does == SECCOMP_DOES_CALL))
		ret = gate_syscall(&r);

	/*
	 * From here to the rt_sigreturn no signal can be noted any more. Signals that the node has raised are
	 * delivered once the program's mask is back.
	 */
	signal_block_all();
	tcb = gate_tcb();	/* a fork child has a gate_tcb of its own */
	WRITE_ONCE(tcb->uctx, NULL);
	uc->uc_stack = tcb_altstack(tcb);
	if (unlikely(does == SECCOMP_DOES_TRAP)) {
		signal_deliver_one(uc, &trap);	/* rax is still the call number, as on Linux */
		if (tcb->npending)
			signal_deliver(uc);
		return;
	}
	if (READ_ONCE(gate_thread()->nsig))
		signal_drain_node();
	if (signal_pending(tcb)) {
		again = signal_wants_restart(tcb, ret);
		if (!again && is_restart(ret))
			ret = -EINTR;
	} else {
		again = is_restart(ret);
	}
	if (again) {
		sc->rip -= 2;
		sc->rax = ret == -ERESTART_RESTARTBLOCK ? __NR_restart_syscall : r.nr;
	} else {
		sc->rax = ret;
	}
	sc->rcx = sc->rip;
	if (tcb->npending)
		signal_deliver(uc);
}

/* The thread waits in the node, as in a call of its own, and goes on in the program or in a signal's handler. */
void sud_wait(struct ucontext *uc, u64 ns)
{
	struct gate_tcb *tcb = gate_tcb();
	stack_t alt = tcb_call_altstack(tcb);

	if (unlikely(tcb->npending))
		signal_mask_back(tcb, uc);
	host_syscall2(__NR_sigaltstack, (long)&alt, 0);
	WRITE_ONCE(tcb->uctx, uc);
	image_call1(RING3_NR_HOST_WAIT, ns);
	signal_block_all();
	WRITE_ONCE(tcb->uctx, NULL);
	uc->uc_stack = tcb_altstack(tcb);
	if (READ_ONCE(gate_thread()->nsig))
		signal_drain_node();
	if (tcb->npending)
		signal_deliver(uc);
}
