/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_space.h - where ring3 lies in the address space of a process
 *
 * Constants only, so that the kernel's access_ok() need not know the rest of the contract.
 */
#ifndef RING3_SPACE_H
#define RING3_SPACE_H

/*
 * Address space. Everything ring3 maps lies between RING3_GATE_BASE and
 * RING3_SPACE_END, so that one range check (Syscall User Dispatch has just
 * one) tells our `syscall` instructions from the program's.
 */
#define RING3_GATE_BASE		0x29f000000000ULL	/* the gate is linked here */
#define RING3_SPACE_BASE	0x2a0000000000ULL	/* slot 0 */
#define RING3_SLOT_SIZE		0x000100000000ULL	/* 4 GiB for each node */
#define RING3_SLOTS		4096
#define RING3_SPACE_END		(RING3_SPACE_BASE + RING3_SLOTS * RING3_SLOT_SIZE)

#endif /* RING3_SPACE_H */
