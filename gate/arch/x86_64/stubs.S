/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stubs.S - one landing place for each rewritten site
 *
 * A site jumps through its word in the low table (patch.c) to its stub here,
 * so nothing is generated at run time. A stub knows its site by its number
 * alone: patch_sites[i] = { address to go back to, call number }.
 *
 * Stack: none of the program's is used (red zones, tiny Go stacks).
 */
#include "asm_defs.h"

	.text
	.globl	patch_stubs, patch_stubs_end
	.hidden	patch_stubs, patch_stubs_end

	.balign	64
patch_stubs:
	.set	i, 0
	.rept	2 * PATCH_SITES
	movq	%rsp, %gs:GATE_WORD(WORD_SP)
	movq	%gs:GATE_WORD(WORD_STACK), %rsp
	.if	i < PATCH_SITES
	movl	patch_sites + i * PATCH_SITE_BYTES + 8(%rip), %eax
	.else
	.nops	6			/* live number: rax has it */
	.endif
	callq	gate_entry
	movq	%gs:GATE_WORD(WORD_SP), %rsp
	jmpq	*(patch_sites + i * PATCH_SITE_BYTES)(%rip)
	.balign	16			/* gate.lds asserts PATCH_STUB_BYTES */
	.set	i, i + 1
	.endr
patch_stubs_end:

	.section .note.GNU-stack, "", @progbits
