/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stubs.S - the stubs of rewritten sites, one for each
 *
 * A site jumps through its word in the low table (patch.c) to its stub here, so no code is generated at run time. A
 * stub knows its site by its index only: patch_sites[i] = { address to return to, call number }.
 *
 * No stub uses the program's stack (red zones, tiny Go stacks).
 *
 * The overhead of a host call is counted in single nanoseconds. So a stub has an entry for each class of calls
 * (asm_defs.h), and patch.c chooses it by the call number:
 *
 *   direct   the host's, whatever the arguments: just call
 *   fd       whose descriptor is it? The host's: just call. The node's: gate_straight
 *   fcntl    as fd for F_GETFL and F_SETFL, others as gate
 *   fd_name  as fd without an address (sendto, recvfrom: the fifth argument), else gate
 *   gate     gate_entry looks closer
 *
 * Each stub counts the call after it: before it, the counting would delay the host's system call entry.
 *
 * Up to the `syscall` of the first three classes, and after it, the thread has the program's stack and registers
 * (but for rax, rcx and r11, which a call changes anyway). So for signals it counts as being in the program:
 * patch_leave() says where.
 *
 * A program that has a GS base of its own (own_gs.c) gets other stubs, in section .own_gs. They trap if GS is the
 * program's, and else go on as class gate.
 *
 * Form A loads the call number. With form B the number is in rax. If that is not the number by which the class was
 * chosen, the stub uses class gate.
 */
#include "asm_defs.h"

	.text
	.globl	patch_layout
	.hidden	patch_layout

.macro NUMBER other
	.if	i < PATCH_SITES
	movl	patch_sites + i * PATCH_SITE_BYTES + 8(%rip), %eax
	.else
	cmpl	patch_sites + i * PATCH_SITE_BYTES + 8(%rip), %eax
	jne	\other
	.endif
.endm

.macro BACK
	jmpq	*(patch_sites + i * PATCH_SITE_BYTES)(%rip)
.endm

.macro STUB
.Lfd_name\@:
	testq	%r8, %r8
	jnz	.Lgate\@
	jmp	.Lfd\@
.Lfcntl\@:
	leal	-3(%rsi), %ecx			/* F_GETFL 3, F_SETFL 4 */
	cmpl	$1, %ecx
	ja	.Lgate\@
.Lfd\@:
	NUMBER	.Lgate\@
	cmpl	$65535, %edi
	ja	.Lgate\@
	movl	%edi, %ecx
	shrl	$6, %ecx
	movq	%gs:THREAD_FDMAP, %r11
	movq	(%r11,%rcx,8), %r11
	btq	%rdi, %r11
	jc	.Lstraight\@
	movl	%edi, %ecx
	subl	gate_fd_base(%rip), %ecx
	cmpl	$(GATE_RESERVED_FDS - 1), %ecx
	jbe	.Lgate\@
.Lfd_call\@:
	syscall
	incq	%gs:GATE_WORD(WORD_DIRECT)
.Lfd_back\@:
	BACK

.Ldirect\@:
	NUMBER	.Lgate\@
.Ldirect_call\@:
	syscall
	incq	%gs:GATE_WORD(WORD_DIRECT)
.Ldirect_back\@:
	BACK

.Lgate\@:
	movq	%rsp, %gs:GATE_WORD(WORD_SP)
	movq	%gs:GATE_WORD(WORD_STACK), %rsp
	.if	i < PATCH_SITES
	movl	patch_sites + i * PATCH_SITE_BYTES + 8(%rip), %eax
	.endif
	callq	gate_entry
.Lgate_called\@:
	movq	%gs:GATE_WORD(WORD_SP), %rsp
	BACK

.Lstraight\@:
	movq	%rsp, %gs:GATE_WORD(WORD_SP)
	movq	%gs:GATE_WORD(WORD_STACK), %rsp
	callq	gate_straight_entry
.Lstraight_called\@:
	movq	%gs:GATE_WORD(WORD_SP), %rsp
	BACK
	.balign	64			/* gate.lds asserts PATCH_STUB_BYTES */

	.pushsection .own_gs, "ax"
	rdgsbase %rcx
	shrq	$32, %rcx			/* RING3_SLOT_SIZE */
	subl	$(RING3_SPACE_BASE >> 32), %ecx
	cmpl	$RING3_SLOTS, %ecx
	jb	.Lgate\@
	hlt
	.balign	OWN_GS_STUB_BYTES
	.popsection

	.if	i == 0 || i == PATCH_SITES
	.pushsection .rodata
	.byte	.Lgate\@ - .Lfd_name\@, .Ldirect\@ - .Lfd_name\@, .Lfd\@ - .Lfd_name\@, .Lfcntl\@ - .Lfd_name\@, 0
	.byte	.Lfd_call\@ - .Lfd_name\@, .Ldirect_call\@ - .Lfd_name\@, .Lstraight\@ - .Lfd_name\@
	.byte	.Lgate_called\@ - .Lfd_name\@, .Lstraight_called\@ - .Lfd_name\@
	.byte	.Lfd_back\@ - .Lfd_name\@, .Ldirect_back\@ - .Lfd_name\@
	.popsection
	.endif
.endm

	.section .rodata
patch_layout:				/* struct patch_layout[2], patch.c */
	.text				/* from patch_stubs to patch_stubs_end: gate.lds */
	.balign	64
	.set	i, 0				/* form A's and form B's in turns: patch_stub() */
	.rept	PATCH_SITES
	STUB
	.set	i, i + PATCH_SITES
	STUB
	.set	i, i - PATCH_SITES + 1
	.endr

	.section .note.GNU-stack, "", @progbits
