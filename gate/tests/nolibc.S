/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nolibc.S - the forms of sites that patch.c knows, and jumps into their middle
 *
 * Static, no libc. Each loop runs a site often enough to have it rewritten, then checks.
 * Exit status: 0, or the number of the check that failed.
 */
#include <asm/unistd.h>

	.macro	FAIL_UNLESS_PID n
	cmpq	%r15, %rax
	movl	$\n, %edi
	jne	quit
	.endm

	.globl	_start
	.text
_start:
	movl	$__NR_getpid, %eax
	syscall
	movq	%rax, %r15
	movl	$50, %ebx

	/* A, entered at the mov and (every other time) at the syscall */
1:	testl	$1, %ebx
	jz	2f
	movl	$__NR_getpid, %eax
	jmp	3f
2:	movl	$__NR_getpid, %eax
3:	syscall
	FAIL_UNLESS_PID 1
	decl	%ebx
	jnz	1b

	/* B: the number comes from elsewhere, a compare follows; also jumped to */
	movl	$50, %ebx
4:	movq	$__NR_getpid, %rax
	testl	$1, %ebx
	jz	5f
	nop
	syscall
6:	cmpq	$-4095, %rax
	jae	8f
	FAIL_UNLESS_PID 2
	jmp	7f
5:	movq	%r15, %rax
	jmp	6b
7:	decl	%ebx
	jnz	4b
	jmp	9f
8:	movl	$3, %edi
	jmp	quit

	/* not rewritable: r8d, not eax, before the syscall */
9:	movl	$50, %ebx
10:	movl	$__NR_getpid, %eax
	movl	$__NR_getpid, %r8d
	syscall
	nop
	FAIL_UNLESS_PID 4
	cmpl	$__NR_getpid, %r8d
	movl	$5, %edi
	jne	quit
	decl	%ebx
	jnz	10b

	/* registers and the red zone survive */
	movl	$50, %ebx
11:	movq	$0x1234567, -8(%rsp)
	movq	$0x7654321, -128(%rsp)
	movq	$1, %rdi
	movq	$2, %rsi
	movq	$3, %rdx
	movq	$4, %r10
	movq	$5, %r8
	movq	$6, %r9
	movq	$7, %r12
	movl	$__NR_getpid, %eax
	syscall
	cmpq	$1, %rdi
	jne	12f
	FAIL_UNLESS_PID 6
	movl	$7, %eax
	cmpq	$0x1234567, -8(%rsp)
	jne	12f
	cmpq	$0x7654321, -128(%rsp)
	jne	12f
	cmpq	$2, %rsi
	jne	12f
	cmpq	$3, %rdx
	jne	12f
	cmpq	$4, %r10
	jne	12f
	cmpq	$5, %r8
	jne	12f
	cmpq	$6, %r9
	jne	12f
	cmpq	$7, %r12
	jne	12f
	decl	%ebx
	jnz	11b

	/* an unusable stack pointer is none of our business */
	movl	$50, %ebx
	movq	%rsp, %rbp
13:	movq	$8, %rsp
	movl	$__NR_getpid, %eax
	syscall
	movq	%rbp, %rsp
	FAIL_UNLESS_PID 8
	decl	%ebx
	jnz	13b
	xorl	%edi, %edi
quit:
	movl	$__NR_exit_group, %eax
	syscall
12:	movl	%eax, %edi
	jmp	quit

	.section .note.GNU-stack, "", @progbits
