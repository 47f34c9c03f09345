// SPDX-License-Identifier: GPL-2.0
/*
 * trace_view.c - a thread inside the gate or the node's kernel, as its debugger should see it
 *
 * Such a thread executes a call of the program. It is shown at the program's own instruction, with the program's
 * stack, so that backtraces work.
 */
#include "policy.h"
#include "process/trace.h"

static void show(struct trace_regs *regs, const struct gate_regs *call, u64 ip, u64 sp)
{
	regs->rip = regs->rcx = ip;
	regs->rsp = sp;
	regs->rax = -ERESTARTSYS;	/* as for a call that the stop has interrupted */
	regs->orig_rax = call->nr;
	regs->rdi = call->a[0];
	regs->rsi = call->a[1];
	regs->rdx = call->a[2];
	regs->r10 = call->a[3];
	regs->r8 = call->a[4];
	regs->r9 = call->a[5];
}

/* In the SIGSYS handler: the whole context is available. */
static bool view_trapped(s32 tid, const struct ucontext *uctx, struct trace_regs *regs)
{
	struct sigcontext sc;
	struct gate_regs call;

	if (!process_peek(tid, &uctx->uc_mcontext, &sc, sizeof(sc)))
		return false;
	call = (struct gate_regs){
		.nr = sc.rax,
		.a = { sc.rdi, sc.rsi, sc.rdx, sc.r10, sc.r8, sc.r9 },
	};
	show(regs, &call, sc.rip, sc.rsp);
	regs->rbx = sc.rbx;
	regs->rbp = sc.rbp;
	regs->r12 = sc.r12;
	regs->r13 = sc.r13;
	regs->r14 = sc.r14;
	regs->r15 = sc.r15;
	regs->r11 = regs->eflags = sc.eflags;
	return true;
}

/* From a rewritten site. Callee-saved registers are somewhere on the gate's stacks: not shown. */
static bool view_stub(s32 tid, const struct ring3_thread *t, const struct gate_tcb *tcb,
		      struct trace_regs *regs)
{
	struct gate_regs call;
	u64 back;
	u32 add;

	if (!t->inside && ((u64)tcb->stack_top < regs->rsp ||
			   (u64)tcb->stack_top - regs->rsp > GATE_STACK_BYTES))
		return false;
	if (!process_peek(tid, tcb->stack_top - REGS_BYTES, &call, REGS_BYTES) ||
	    call.stub < (u64)patch_stubs || call.stub >= (u64)patch_stubs_end ||
	    !process_peek(tid, patch_stub_return_word(call.stub, &add), &back, sizeof(back)))
		return false;
	show(regs, &call, back + add, t->gate[WORD_SP]);
	return true;
}

/* A stub that makes the host's call itself has the program's registers except rip. */
static bool view_direct(s32 tid, const struct gate_tcb *tcb, struct trace_regs *regs)
{
	u64 back;
	u32 add;

	if (regs->rip < (u64)patch_stubs || regs->rip >= (u64)patch_stubs_end ||
	    (u64)tcb->stack_top - regs->rsp <= GATE_STACK_BYTES ||
	    !process_peek(tid, patch_stub_return_word(regs->rip, &add), &back, sizeof(back)))
		return false;
	regs->rip = regs->rcx = back + add;
	return true;
}

bool trace_view(s32 tid, struct trace_regs *regs)
{
	struct ring3_thread thread;
	struct gate_tcb tcb;

	if (!in_ring3(regs->rip) || !in_ring3(regs->gs_base) ||
	    !process_peek(tid, (void *)regs->gs_base, &thread, sizeof(thread)) ||
	    thread.self != regs->gs_base ||
	    !process_peek(tid, (void *)thread.gate[WORD_TCB], &tcb, sizeof(tcb)))
		return false;
	if (tcb.uctx)
		return view_trapped(tid, tcb.uctx, regs);
	if (view_direct(tid, &tcb, regs))
		return true;
	return view_stub(tid, &thread, &tcb, regs);
}
