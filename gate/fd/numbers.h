/* SPDX-License-Identifier: GPL-2.0 */
/*
 * numbers.h - fd.c and control.c announce changes of numbers to numbers.c
 */
#ifndef RING3_GATE_NUMBERS_H
#define RING3_GATE_NUMBERS_H

#include "policy.h"

void fd_closing(void);			/* before a number is given up on the host */
void fd_replacing(int more);		/* a number is given up on the host first, in the node later: 1 before, -1 after */
void fd_making_begins(void);		/* before the host allocates a number for a node descriptor ... */
void fd_making_at(long fd);
long fd_making_ends(long ret);		/* the descriptor is made, or not; returns ret */

/*
 * fd.c: the host has duplicated the placeholder `from' as `to', after fd_making_begins(); makes the node do the
 * same
 */
long dup_follow(u32 from, long to, bool cloexec);

#endif /* RING3_GATE_NUMBERS_H */
