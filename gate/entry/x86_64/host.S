/* SPDX-License-Identifier: GPL-2.0 */
/*
 * host.S - calls from C into the image, and host calls that may wait
 */
#include "asm_defs.h"
#include <asm/unistd.h>

	.text

/*
 * long gate_enter_raw(nr, a, b, c, d, e, f, struct ring3_thread *): from C's calling convention to the image's
 * enter convention.
 */
	.globl	gate_enter_raw
	.hidden	gate_enter_raw
	.balign	16
gate_enter_raw:
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %rcx
	movq	%r9, %r8
	movq	8(%rsp), %r9
	movq	16(%rsp), %r10
	subq	$8, %rsp
	movl	$1, %gs:THREAD_INSIDE
	callq	*%gs:GATE_WORD(WORD_ENTER)
	movl	$0, %gs:THREAD_INSIDE
	addq	$8, %rsp
	ret

/*
 * long gate_host(nr, a, b, c, d, e, f): see gate.h. If a signal handler finds the thread between gate_host_check
 * and gate_host_insn, it moves it to gate_host_abort: the call has not begun, or the host was about to restart it.
 */
	.globl	gate_host, gate_host_check, gate_host_insn, gate_host_abort
	.hidden	gate_host, gate_host_check, gate_host_insn, gate_host_abort
	.balign	16
gate_host:
	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
gate_host_check:
	cmpl	$0, %gs:THREAD_SIGPENDING
	jne	gate_host_abort
gate_host_insn:
	syscall
	ret
gate_host_abort:
	movq	$-513, %rax
	ret

/*
 * void gate_exit_raw(int code, u32 *busy): marks the thread's area as free and ends the thread without touching
 * memory after that. All signals are blocked.
 */
	.globl	gate_exit_raw
	.hidden	gate_exit_raw
gate_exit_raw:
	movl	$__NR_exit, %eax
	movl	$0, (%rsi)
	syscall
	hlt

	.section .note.GNU-stack, "", @progbits
