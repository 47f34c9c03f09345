/* SPDX-License-Identifier: GPL-2.0 */
/*
 * memory.S - memcpy, memmove, memset by string instructions
 *
 * The image uses no vector registers. Every CPU that ring3 is meant for has fast `rep movsb` (ERMS), newer ones for
 * short counts too (FSRM). Small sizes use moves, since ERMS alone starts slowly. KASAN has its own versions of
 * these names, which call those with underscores.
 *
 * If the destination is 1 to 15 bytes after the source modulo 4096, AMD processors (seen on Zen 4) take ten to
 * twenty times as long for `rep movsb`: 9.4 us for 32 KiB instead of 0.6. The buffers of a connection may stay in
 * such positions for its whole life. Moves take 1.1 us there.
 */
#include <linux/linkage.h>

#include "copy.h"

	.text

SYM_FUNC_START_WEAK(memcpy)
SYM_FUNC_START(__memcpy)
	movq	%rdi, %rax
	movq	%rdx, %rcx
	cmpq	$32, %rdx
	jbe	.Lsmall
.Lforward:
	JUMP_IF_ALIASED .Laliased
	rep movsb
	ret
.Laliased:
	movq	(%rsi), %r8
	movq	8(%rsi), %r9
	movq	16(%rsi), %r10
	movq	24(%rsi), %r11
	movq	%r8, (%rdi)
	movq	%r9, 8(%rdi)
	movq	%r10, 16(%rdi)
	movq	%r11, 24(%rdi)
	addq	$32, %rsi
	addq	$32, %rdi
	subq	$32, %rcx
	cmpq	$32, %rcx
	jae	.Laliased
	/* Loads before stores throughout, so this serves overlaps too. */
.Lsmall:
	cmpl	$16, %ecx
	jb	1f
	movq	(%rsi), %r8
	movq	8(%rsi), %r9
	movq	-16(%rsi, %rcx), %r10
	movq	-8(%rsi, %rcx), %r11
	movq	%r8, (%rdi)
	movq	%r9, 8(%rdi)
	movq	%r10, -16(%rdi, %rcx)
	movq	%r11, -8(%rdi, %rcx)
	ret
1:	cmpl	$8, %ecx
	jb	2f
	movq	(%rsi), %r8
	movq	-8(%rsi, %rcx), %r9
	movq	%r8, (%rdi)
	movq	%r9, -8(%rdi, %rcx)
	ret
2:	cmpl	$4, %ecx
	jb	3f
	movl	(%rsi), %r8d
	movl	-4(%rsi, %rcx), %r9d
	movl	%r8d, (%rdi)
	movl	%r9d, -4(%rdi, %rcx)
	ret
3:	testl	%ecx, %ecx
	je	5f
	movzbl	(%rsi), %r8d
	cmpl	$1, %ecx
	je	4f
	movzwl	-2(%rsi, %rcx), %r9d
	movb	%r8b, (%rdi)
	movw	%r9w, -2(%rdi, %rcx)
	ret
4:	movb	%r8b, (%rdi)
5:	ret
SYM_FUNC_END(__memcpy)
SYM_FUNC_END(memcpy)

SYM_FUNC_START_WEAK(memmove)
SYM_FUNC_START(__memmove)
	movq	%rdi, %rax
	movq	%rdx, %rcx
	cmpq	$32, %rdx
	jbe	.Lsmall
	movq	%rdi, %r8
	subq	%rsi, %r8
	cmpq	%rdx, %r8		/* unsigned: forward is safe unless 0 < to - from < n */
	jae	.Lforward
.Lbackward:
	/* Eight bytes at a time from the end; the rest at the head is done last. */
	cmpq	$8, %rcx
	jb	1f
	movq	-8(%rsi, %rcx), %r8
	movq	%r8, -8(%rdi, %rcx)
	subq	$8, %rcx
	jmp	.Lbackward
1:	testq	%rcx, %rcx
	je	2f
	movb	-1(%rsi, %rcx), %r8b
	movb	%r8b, -1(%rdi, %rcx)
	decq	%rcx
	jmp	1b
2:	ret
SYM_FUNC_END(__memmove)
SYM_FUNC_END(memmove)

SYM_FUNC_START_WEAK(memset)
SYM_FUNC_START(__memset)
	movq	%rdi, %r9
	movl	%esi, %eax
	movq	%rdx, %rcx
	rep stosb
	movq	%r9, %rax
	ret
SYM_FUNC_END(__memset)
SYM_FUNC_END(memset)

	.section .note.GNU-stack, "", @progbits
