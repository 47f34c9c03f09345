/* SPDX-License-Identifier: GPL-2.0 */
/*
 * entry.S - from a rewritten site into the gate, and out again
 *
 * Registers as in the syscall ABI: nr in rax, arguments in rdi rsi rdx r10 r8 r9; rcx and r11 are clobbered, all
 * others are preserved. Vector state is never touched. Each call has its ret, for the processor's return stack.
 */
#include "asm_defs.h"
#include <asm-generic/errno-base.h>

	.text

/* Pushes a struct gate_regs. Its upper part lies ready above the stack (area.c). */
.macro PUSH_REGS
	pushq	%r9
	pushq	%r8
	pushq	%r10
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%rax
.endm

.macro POP_ARGS
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%r10
	popq	%r8
	popq	%r9
.endm

/*
 * gate_entry, gate_straight_entry: called by a stub, which has switched to the gate stack. gate_straight_entry is
 * for a call on a descriptor of the node that only has to be passed on.
 *
 * The code from gate_exit_check to gate_exit_end can be repeated from gate_exit_check. A signal that arrives in
 * this window sends the thread back there (signal.c), so that it is never missed.
 */
	.globl	gate_entry, gate_straight_entry, gate_exit_check, gate_exit_end
	.hidden	gate_entry, gate_straight_entry, gate_exit_check, gate_exit_end
	.balign	64
gate_straight_entry:
	cld				/* as Linux's system call entry does */
	PUSH_REGS
.Lstraight:
	movq	%r10, %rcx
	movq	%gs:THREAD_SELF, %r10
	movl	$1, %gs:THREAD_INSIDE
	cmpl	$0, gate_stopper(%rip)		/* stop.c */
	jne	.Lstopping
	callq	*%gs:GATE_WORD(WORD_ENTER)
	movl	$0, %gs:THREAD_INSIDE
	incq	%gs:GATE_WORD(WORD_STRAIGHT)
	cmpq	$-EIO, %rax
	je	.Lended

gate_exit_check:
	cmpq	$0, %gs:THREAD_SIGPENDING
	jne	.Lwork
	leaq	516(%rax), %rcx
	cmpq	$4, %rcx
	jbe	.Lwork
	addq	$8, %rsp
	POP_ARGS
	ret
gate_exit_end:

.Lended:
	callq	end_look
	movq	$-EIO, %rax
	jmp	gate_exit_check

	.balign	64
gate_entry:
	cld
	PUSH_REGS
	cmpl	$(GATE_STRAIGHT_NR - 1), %eax
	ja	.Lslow
	movl	%eax, %eax
	leaq	gate_straight(%rip), %rcx
	movzbl	(%rcx,%rax), %ecx
	testl	%ecx, %ecx
	jz	.Lslow
	cmpl	$65535, %edi
	ja	.Lslow
	cmpl	$GATE_STRAIGHT, %ecx
	jne	.Lfcntl
.Lowner:
	movl	%edi, %r11d
	shrl	$6, %r11d
	movq	%gs:THREAD_FDMAP, %rcx
	movq	(%rcx,%r11,8), %r11
	btq	%rdi, %r11
	jc	.Lstraight
	jmp	.Lslow

.Lfcntl:
	leal	-3(%rsi), %r11d		/* F_GETFL 3, F_SETFL 4 */
	cmpl	$1, %r11d
	jbe	.Lowner

.Lstopping:
	movl	$0, %gs:THREAD_INSIDE
.Lslow:
	movq	%rsp, %rdi
	callq	gate_call
	testl	%edx, %edx
	jz	gate_exit_check
	jmp	.Lact

.Lwork:
	movq	%rsp, %rdi
	movq	%rax, %rsi
	callq	gate_exit_work
	testl	%edx, %edx
	jz	gate_exit_check

/*
 * The way out needs the program's whole context: restore all registers that the entry changed, and trap. The
 * SIGSEGV handler then has the whole context, made by the host. edx: 1 deliver signals, 2 repeat the call from the
 * handler.
 */
.Lact:
	cmpl	$1, %edx
	jne	.Lredo
	addq	$8, %rsp
	POP_ARGS
	movq	%gs:GATE_WORD(WORD_SP), %rsp
	.globl	gate_trap_deliver
	.hidden	gate_trap_deliver
gate_trap_deliver:
	hlt

.Lredo:
	popq	%rax
	POP_ARGS
	movq	%gs:GATE_WORD(WORD_SP), %rsp
	.globl	gate_trap_redo
	.hidden	gate_trap_redo
gate_trap_redo:
	hlt

	.section .note.GNU-stack, "", @progbits
