/* SPDX-License-Identifier: GPL-2.0 */
/*
 * asm_defs.h - constants that C and assembly share
 */
#ifndef GATE_ASM_DEFS_H
#define GATE_ASM_DEFS_H

#include "ring3_asm.h"

/* thread->gate[] words of the mechanism; see GATE_WORD_POLICY */
#define WORD_STACK		0	/* what entry.S loads into rsp */
#define WORD_SP			1	/* the program's rsp while in the gate */
#define WORD_ENTER		2	/* address of the image's enter */
#define WORD_RESUME		3	/* where gate_trap_* continues */
#define WORD_TCB		4	/* struct gate_tcb * */
#define WORD_VFORK		10	/* first thread of a process: the tid of the parent that waits for its exec or exit, see vfork_wait() */
#define WORD_COUNTS		5	/* RING3_STAT_COUNTS words: calls of this thread that are not yet added to region->stat */
#define WORD_LEFT		12	/* in virtual time: the host zeroes it when the thread has ended */
#define WORD_STOPPING		11	/* sigstop.c */
#define WORD_NOTES		13	/* three words of patch_fork.c */
#define WORD_DIRECT		(WORD_COUNTS + RING3_STAT_DIRECT)
#define WORD_STRAIGHT		(WORD_COUNTS + RING3_STAT_STRAIGHT)

#define GATE_WORD(n)		(THREAD_GATE + 8 * (n))

/* gate_straight[nr]: what entry.S does by itself with a descriptor of the node */
#define GATE_STRAIGHT_NR	512
#define GATE_STRAIGHT		1	/* any arguments */
#define GATE_STRAIGHT_FCNTL	2	/* fcntl: F_GETFL and F_SETFL only */

/* gate_class(nr): how a rewritten site's stub begins; see stubs.S */
#define CLASS_GATE		0
#define CLASS_DIRECT		1
#define CLASS_FD		2
#define CLASS_FCNTL		3
#define CLASS_FD_NAME		4
#define CLASSES			5

#define GATE_RESERVED_FDS	32	/* see gate.h */

/* struct gate_regs as entry.S builds it */
#define REGS_STUB		56
#define REGS_BYTES		64	/* nr, a[6], stub: the part that entry.S pushes */
#define REGS_ABOVE		64	/* room above it for the rest of the structure */

/* Each thread's stacks */
#define GATE_STACK_BYTES	65536
#define ALTSTACK_BYTES		98304

/* patch.c and stubs.S */
#define PATCH_SITES		4096	/* of each kind */
#define PATCH_STUB_BYTES	192
#define OWN_GS_STUB_BYTES	32

/* cpuid.c, cpuid.S */
#define CPUID_STUBS		60
#define CPUID_STUB_BYTES	96
#define CPUID_DATA_BYTES	48
#define PATCH_SITE_BYTES	32	/* struct patch_site */

#endif /* GATE_ASM_DEFS_H */
