/* SPDX-License-Identifier: GPL-2.0 */
/*
 * numbers.h - what fd.c and control.c tell numbers.c
 */
#ifndef RING3_GATE_NUMBERS_H
#define RING3_GATE_NUMBERS_H

#include "policy.h"

void fd_closing(void);			/* a number is about to be given up on the host */
void fd_replacing(int more);		/* ... and in the node later: 1 before, -1 after */
void fd_making_begins(void);		/* this thread is about to have one from the host: at this ... */
void fd_making_at(long fd);
long fd_making_ends(long ret);		/* ... and it is made, or not; ret again */

/* fd.c: the host has duplicated the placeholder `from' as `to', after fd_making_begins(); lets the node follow */
long dup_follow(u32 from, long to, bool cloexec);

#endif /* RING3_GATE_NUMBERS_H */
