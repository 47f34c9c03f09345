/* SPDX-License-Identifier: GPL-2.0 */
/*
 * start.S - the first instructions of the gate, and of the program
 */
#include "asm_defs.h"

	.text

/*
 * Entry point: the host starts the gate here. The program's stack is left alone (stack.c builds on it). The gate
 * runs on what becomes the first thread's gate stack.
 */
	.globl	_start
_start:
	xorl	%ebp, %ebp
	movq	%rsp, %rdi
	leaq	gate_first_stack_top(%rip), %rsp
	callq	gate_start
	hlt

/*
 * void gate_jump(u64 entry, u64 sp): starts the program, with all registers zero as after the host's execve.
 * thread->gate[WORD_RESUME] holds the entry address. Traps first if a debugger has asked for that (trace.c).
 */
	.globl	gate_jump, gate_jump_stop
	.hidden	gate_jump, gate_jump_stop
gate_jump:
	movq	%rdi, %gs:GATE_WORD(WORD_RESUME)
	movq	%rsi, %rsp
	xorl	%eax, %eax
	xorl	%ebx, %ebx
	xorl	%ecx, %ecx
	xorl	%edx, %edx
	xorl	%esi, %esi
	xorl	%edi, %edi
	xorl	%ebp, %ebp
	xorl	%r8d, %r8d
	xorl	%r9d, %r9d
	xorl	%r10d, %r10d
	xorl	%r11d, %r11d
	xorl	%r12d, %r12d
	xorl	%r13d, %r13d
	xorl	%r14d, %r14d
	xorl	%r15d, %r15d
	cmpb	$0, gate_debugged(%rip)
	je	gate_jump_stop
	int3
gate_jump_stop:
	jmpq	*%gs:GATE_WORD(WORD_RESUME)

	.bss
	.balign	8
	.globl	gate_debugged
	.hidden	gate_debugged
gate_debugged:
	.quad	0

	.globl	gate_first_altstack, gate_first_stack_top
	.hidden	gate_first_altstack, gate_first_stack_top
/*
 * The first thread's stacks have no unmapped page below them, unlike those of other threads. A gap of the same size
 * takes its place.
 */
	.section .bss.stack, "aw", @nobits
	.balign	4096
	.skip	ALTSTACK_BYTES
gate_first_altstack:
	.skip	ALTSTACK_BYTES
	.skip	GATE_STACK_BYTES
	.skip	GATE_STACK_BYTES - REGS_ABOVE
gate_first_stack_top:
	.skip	REGS_ABOVE

	.section .note.GNU-stack, "", @progbits
