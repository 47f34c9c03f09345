/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cpuid.S - the stubs of `cpuid` sites: load four registers from cpuid_data[i], and return
 *
 * A stub also does the work of the overwritten instructions, so it has an entry for each kind of them (cpuid.c:
 * struct cpuid_layout). If the subleaf comes from a register, that must be the subleaf of the remembered answer;
 * otherwise the stub returns to the instruction itself. A stub changes neither flags nor stack. Up to its end it
 * changes no register that the site's instructions do not set before they use it: so cpuid_leave() can start them
 * again.
 */
#include "asm_defs.h"

	.text
	.globl	cpuid_stubs, cpuid_stubs_end, cpuid_layout
	.hidden	cpuid_stubs, cpuid_stubs_end, cpuid_layout

#define DATA(offset)	cpuid_data + i * CPUID_DATA_BYTES + offset(%rip)

.macro STUB
.Lxor\@:
	xorl	%ecx, %ecx
.Lplain\@:
	movl	DATA(0), %eax
	movl	DATA(4), %ebx
	movl	DATA(8), %ecx
	movl	DATA(12), %edx
	jmpq	*DATA(16)
.Lesi\@:
	movl	%esi, %ecx
	jmp	.Lcheck\@
.Ledi\@:
	movl	%edi, %ecx
	jmp	.Lcheck\@
.Lebp\@:
	movl	%ebp, %ecx
.Lcheck\@:
	movl	%ecx, %edx
	movl	DATA(40), %ebx			/* minus the subleaf */
	leal	(%rbx,%rcx), %ecx
	jecxz	.Lplain\@
	movl	%edx, %ecx
	movl	DATA(32), %eax
	jmpq	*DATA(24)
	.balign	32			/* gate.lds asserts CPUID_STUB_BYTES */

	.if	i == 0
	.pushsection .rodata
	.byte	.Lplain\@ - .Lxor\@, 0, .Lesi\@ - .Lxor\@, .Ledi\@ - .Lxor\@, .Lebp\@ - .Lxor\@
	.popsection
	.endif
.endm

	.section .rodata
cpuid_layout:				/* by enum between, cpuid.c */
	.text
	.balign	32
cpuid_stubs:
	.set	i, 0
	.rept	CPUID_STUBS
	STUB
	.set	i, i + 1
	.endr
cpuid_stubs_end:

	.section .note.GNU-stack, "", @progbits
