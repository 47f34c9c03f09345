/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_adopt.h - the node's adopter, a process that the keeper starts
 *
 * It goes on with the kernel code of threads that are killed in there: the image's adopt.c says how.
 */
#ifndef RING3_ADOPT_H
#define RING3_ADOPT_H

#include "ring3.h"

/* What it has mapped of its own, in a part of the slot that nobody else uses. */
#define RING3_ADOPT_OFFSET	0x0e0000000ULL

/*
 * ADOPTER(): for the keeper: address of the adopter's thread block, of which the node has one. The state of its
 * ring3_proc is 1 from when it is ready until the keeper finds it dead; -EBUSY meanwhile.
 */
/*
 * ADOPT(how): the adopter's life, entered with that thread block. Unmaps all of its process but the
 * node's memory; ends the process, with an error number where the host does not let it adopt.
 */
#define RING3_ADOPT_BEST	0	/* what the host lets it do */
#define RING3_ADOPT_TRACE	1	/* by ptrace() in any case */

/* How it works, in `threads' of its ring3_proc. */
enum ring3_adopts {
	RING3_ADOPTS_AFTER = 1,	/* it hears of each death a moment after: wait for it */
	RING3_ADOPTS_TRACED = 2,	/* it traces the node's threads, and goes on before they are gone */
};
/* ... and what it has done so far, in gate[] of its thread block: contexts gone on with, vCPUs made free. */
#define RING3_ADOPTED	0
#define RING3_FREED	1

/*
 * thread->gate[] from this word on: 1 while a handler of the gate's has interrupted the image, and then r8 to r15,
 * rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, flags of the image's code, as in the host's struct sigcontext.
 */
#define RING3_ADOPT_WORD	40
#define RING3_ADOPT_REGS	18

#endif /* RING3_ADOPT_H */
