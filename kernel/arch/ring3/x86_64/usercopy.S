/* SPDX-License-Identifier: GPL-2.0 */
/*
 * usercopy.S - copies that may fault
 *
 * unsigned long ring3_copy(to, from, n), ring3_clear(to, n): return how many
 * bytes were left undone. A fault in `rep movsb` leaves exactly that in rcx.
 */
#include <linux/linkage.h>
#include <asm/asm.h>

	.text

SYM_FUNC_START(ring3_copy)
	movq	%rdx, %rcx
	cmpq	$8, %rdx
	je	2f
1:	rep movsb
	movq	%rcx, %rax
	ret
2:	movq	(%rsi), %rax
3:	movq	%rax, (%rdi)
	xorl	%eax, %eax
	ret
4:	movq	%rcx, %rax
	ret
	_ASM_EXTABLE_UA(1b, 4b)
	_ASM_EXTABLE_UA(2b, 1b)		/* bytewise, to count what can be copied */
	_ASM_EXTABLE_UA(3b, 1b)
SYM_FUNC_END(ring3_copy)

SYM_FUNC_START(ring3_clear)
	movq	%rsi, %rcx
	xorl	%eax, %eax
1:	rep stosb
2:	movq	%rcx, %rax
	ret
	_ASM_EXTABLE_UA(1b, 2b)
SYM_FUNC_END(ring3_clear)

	.section .note.GNU-stack, "", @progbits
