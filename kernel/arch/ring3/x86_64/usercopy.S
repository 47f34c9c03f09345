/* SPDX-License-Identifier: GPL-2.0 */
/*
 * usercopy.S - copies that may fault
 *
 * unsigned long ring3_copy(to, from, n), ring3_clear(to, n): return the number of bytes that were not processed.
 * ring3_copy_now() is the same without the way by vcpu/outside.c. After a fault in `rep movsb`, rcx has exactly that number.
 */
#include <linux/linkage.h>
#include <asm/asm.h>

#include "../vcpu/tuning.h"
#include "copy.h"

	.text

SYM_FUNC_START(ring3_copy)
#ifndef CONFIG_RING3_SIM
	cmpq	ring3_copy_long_from(%rip), %rdx
	jae	ring3_copy_long
#endif
SYM_INNER_LABEL(ring3_copy_now, SYM_L_GLOBAL)
	movq	%rdx, %rcx
	cmpq	$8, %rdx
	je	2f
	cmpq	$32, %rdx
	jb	1f
	JUMP_IF_ALIASED 5f
1:	rep movsb
	movq	%rcx, %rax
	ret
	/* A turn counts only when all of it is done: after a fault, the bytewise copy restarts at its beginning. */
5:	movq	(%rsi), %r8
6:	movq	8(%rsi), %r9
7:	movq	16(%rsi), %r10
8:	movq	24(%rsi), %r11
9:	movq	%r8, (%rdi)
10:	movq	%r9, 8(%rdi)
11:	movq	%r10, 16(%rdi)
12:	movq	%r11, 24(%rdi)
	addq	$32, %rsi
	addq	$32, %rdi
	subq	$32, %rcx
	cmpq	$32, %rcx
	jae	5b
	jmp	1b
2:	movq	(%rsi), %rax
3:	movq	%rax, (%rdi)
	xorl	%eax, %eax
	ret
4:	movq	%rcx, %rax
	ret
	_ASM_EXTABLE_UA(1b, 4b)
	_ASM_EXTABLE_UA(2b, 1b)		/* bytewise, to find how much can be copied */
	_ASM_EXTABLE_UA(3b, 1b)
	_ASM_EXTABLE_UA(5b, 1b)
	_ASM_EXTABLE_UA(6b, 1b)
	_ASM_EXTABLE_UA(7b, 1b)
	_ASM_EXTABLE_UA(8b, 1b)
	_ASM_EXTABLE_UA(9b, 1b)
	_ASM_EXTABLE_UA(10b, 1b)
	_ASM_EXTABLE_UA(11b, 1b)
	_ASM_EXTABLE_UA(12b, 1b)
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
