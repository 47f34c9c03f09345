/* SPDX-License-Identifier: GPL-2.0 */
/* copy.h - shared by the copies in assembly */
#ifndef RING3_COPY_H
#define RING3_COPY_H

/* Is (rdi - rsi) mod 4096 one of 1..15? See memory.S. Clobbers r8. */
.macro JUMP_IF_ALIASED to
	leal	-1(%rdi), %r8d
	subl	%esi, %r8d
	andl	$0xfff, %r8d
	cmpl	$15, %r8d
	jb	\to
.endm

#endif
