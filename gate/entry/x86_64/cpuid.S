/* SPDX-License-Identifier: GPL-2.0 */
/*
 * cpuid.S - what sites of `cpuid` jump to: four registers from cpuid_data[i], and back
 *
 * A stub does what was overwritten, too, so it has an entry for each kind of that (cpuid.c:
 * struct cpuid_layout). Where the subleaf comes from a register it has to be the one that the answer is
 * for; else back to the instruction. Like it, none of this changes a flag or the stack, and up to the end
 * nothing that the site's instructions do not set before they use it: cpuid_leave() starts them again.
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
