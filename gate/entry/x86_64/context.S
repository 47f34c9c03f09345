/* SPDX-License-Identifier: GPL-2.0 */
/*
 * context.S - contexts of the program: of a stop signal, resumed, and copied for a child
 */
#include "asm_defs.h"
#include <asm/prctl.h>
#include <asm/unistd.h>

	.text

/*
 * void gate_on_stop(sig, info, uc): on_signal(), for a signal that stops the process. It leaves its note first:
 * sigstop.c.
 */
	.globl	gate_on_stop, gate_on_stop_noted
	.hidden	gate_on_stop, gate_on_stop_noted
gate_on_stop:
	cmpb	$0, gate_own_gs(%rip)
	jne	2f
1:	movq	$1, %gs:GATE_WORD(WORD_STOPPING)
gate_on_stop_noted:
	jmp	on_signal
2:	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	callq	own_gs_taken
	popq	%rdx
	popq	%rsi
	popq	%rdi
	jmp	1b

/* The restorer of the gate's own handlers. */
	.globl	gate_restorer
	.hidden	gate_restorer
	.balign	16
	nop				/* unwinders look at the byte before a return address */
gate_restorer:
	movq	%rsp, %rdi

/*
 * void gate_resume(struct ucontext *): resumes that context. Signals that are noted until the last instruction are
 * not lost: a handler that finds the thread between gate_resume_check and gate_resume_insn moves it back to
 * gate_resume_check (signal.c). r12 and r13 need not be preserved. A GS base of the program's own is loaded last, since
 * the check needs the gate's.
 */
	.globl	gate_resume, gate_resume_check, gate_resume_insn
	.hidden	gate_resume, gate_resume_check, gate_resume_insn
gate_resume:
	movq	%rsp, %r12
	andq	$-16, %r12
	movq	%rdi, %r13
gate_resume_check:
	cmpb	$0, gate_own_gs(%rip)
	jne	3f
4:	cmpl	$0, %gs:THREAD_SIGPENDING
	jne	2f
	jmp	1f
3:	movq	%r12, %rsp
	movq	%r13, %rdi
	leaq	gate_resume_check(%rip), %rsi
	leaq	gate_resume_insn(%rip), %rdx
	callq	own_gs_of
	testq	%rax, %rax
	jz	4b
	cmpl	$0, %gs:THREAD_SIGPENDING
	jne	2f
	wrgsbase %rax
1:	movq	%r13, %rsp
	movl	$__NR_rt_sigreturn, %eax
gate_resume_insn:
	syscall
	hlt
2:	movq	%r12, %rsp
	movq	%r13, %rdi
	callq	signal_late
	testl	%eax, %eax
	jnz	gate_resume_check
	jmp	1b

/*
 * long gate_clone_raw(nr, a0, a1, a2, a3, a4, void *child, struct ring3_thread *t): a clone whose child has the
 * thread block t. A child with a stack of its own (named in the arguments) starts in gate_child_start(child).
 * Without one (child = NULL) the child returns 0 from here as well. In that case the clone is not begun while a
 * signal is noted, since the child would have a copy of it: -ERESTARTNOINTR. Between gate_clone_born and
 * gate_clone_known the child still has its parent's GS: see signal.c.
 */
	.globl	gate_clone_raw, gate_clone_check, gate_clone_insn, gate_clone_abort
	.globl	gate_clone_born, gate_clone_known
	.hidden	gate_clone_raw, gate_clone_check, gate_clone_insn, gate_clone_abort
	.hidden	gate_clone_born, gate_clone_known
gate_clone_raw:
	pushq	%rbx
	pushq	%r12
	movq	24(%rsp), %rbx
	movq	32(%rsp), %r12
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	testq	%rbx, %rbx
	jnz	gate_clone_insn
gate_clone_check:
	cmpl	$0, %gs:THREAD_SIGPENDING
	jne	gate_clone_abort
gate_clone_insn:
	syscall
gate_clone_born:			/* in the child, where rax is 0 */
	testq	%rax, %rax
	jnz	1f
	movl	$ARCH_SET_GS, %edi
	movq	%r12, %rsi
	movl	$__NR_arch_prctl, %eax
	syscall
gate_clone_known:
	xorl	%eax, %eax
	testq	%rbx, %rbx
	jz	1f
	xorl	%ebp, %ebp
	movq	%rbx, %rdi
	callq	gate_child_start
	hlt
gate_clone_abort:
	movq	$-513, %rax
1:	popq	%r12
	popq	%rbx
	ret

	.section .note.GNU-stack, "", @progbits
