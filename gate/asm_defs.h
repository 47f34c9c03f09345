/* SPDX-License-Identifier: GPL-2.0 */
/*
 * asm_defs.h - constants that C and assembly share; thread.c asserts the offsets
 */
#ifndef GATE_ASM_DEFS_H
#define GATE_ASM_DEFS_H

/* struct ring3_thread, through %gs */
#define THREAD_SELF		0
#define THREAD_INSIDE		36
#define THREAD_SIGPENDING	40	/* and nsig in the upper half of the quadword */
#define THREAD_FDMAP		56
#define THREAD_GATE		328

/* thread->gate[] words of the mechanism; see GATE_WORD_POLICY */
#define WORD_STACK		0	/* what entry.S loads into rsp */
#define WORD_SP			1	/* the program's rsp while in the gate */
#define WORD_ENTER		2	/* address of the image's enter */
#define WORD_RESUME		3	/* where gate_trap_* has to go on */
#define WORD_TCB		4	/* struct gate_tcb * */

#define GATE_WORD(n)		(THREAD_GATE + 8 * (n))

/* gate_straight[nr] */
#define GATE_STRAIGHT_NR	512
#define GATE_STRAIGHT		1	/* any arguments */
#define GATE_STRAIGHT_FCNTL	2	/* fcntl: F_GETFL and F_SETFL only */

/* struct gate_regs as entry.S builds it */
#define REGS_STUB		56
#define REGS_BYTES		64	/* nr, a[6], stub: what entry.S pushes */
#define REGS_ABOVE		64	/* room above for the rest of the structure */

/* patch.c and stubs.S */
#define PATCH_SITES		4096	/* of each kind */
#define PATCH_STUB_BYTES	48
#define PATCH_STUB_CALLED	29	/* offset behind the stub's call */
#define PATCH_SITE_BYTES	16	/* struct patch_site */

#endif /* GATE_ASM_DEFS_H */
