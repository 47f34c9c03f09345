/* SPDX-License-Identifier: GPL-2.0 */
/*
 * copy.S - copies that survive a bad pointer
 *
 * A fault at gate_copy_start..gate_copy_end goes on at gate_copy_fault (signal.c).
 */
	.text
	.globl	gate_copy_raw, gate_load_byte, gate_copy_start, gate_copy_end, gate_copy_fault
	.hidden	gate_copy_raw, gate_load_byte, gate_copy_start, gate_copy_end, gate_copy_fault

/* long gate_copy_raw(dst, src, n): 0 or -EFAULT. */
	.balign	16
gate_copy_start:
gate_copy_raw:
	movq	%rdx, %rcx
	rep movsb
	xorl	%eax, %eax
	ret

/* long gate_load_byte(src): 0..255 or -EFAULT. */
gate_load_byte:
	movzbl	(%rdi), %eax
	ret
gate_copy_end:

gate_copy_fault:
	movq	$-14, %rax
	ret

	.section .note.GNU-stack, "", @progbits
