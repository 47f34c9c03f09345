/* SPDX-License-Identifier: GPL-2.0 */
/*
 * copy.S - copies that survive a bad pointer
 *
 * A fault between gate_copy_start and gate_copy_end continues at gate_copy_fault (signal.c).
 */
	.text
	.globl	gate_copy_raw, gate_strncpy_raw, gate_copy_start, gate_copy_end, gate_copy_fault
	.hidden	gate_copy_raw, gate_strncpy_raw, gate_copy_start, gate_copy_end, gate_copy_fault

/* long gate_copy_raw(dst, src, n): 0 or -EFAULT. */
	.balign	16
gate_copy_start:
gate_copy_raw:
	movq	%rdx, %rcx
	rep movsb
	xorl	%eax, %eax
	ret

/* long gate_strncpy_raw(dst, src, size): the length; -ENAMETOOLONG if there is no NUL within size; or -EFAULT. */
gate_strncpy_raw:
	xorl	%eax, %eax
.Lbyte:
	cmpq	%rdx, %rax
	jae	.Ltoo_long
	movzbl	(%rsi,%rax), %ecx
	movb	%cl, (%rdi,%rax)
	incq	%rax
	testl	%ecx, %ecx
	jnz	.Lbyte
	decq	%rax
	ret
.Ltoo_long:
	movq	$-36, %rax
	ret
gate_copy_end:

gate_copy_fault:
	movq	$-14, %rax
	ret

	.section .note.GNU-stack, "", @progbits
