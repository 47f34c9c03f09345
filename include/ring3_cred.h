/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_cred.h - what a program may do, told to the node; and its number
 *
 * Calls of ring3's own, whose numbers are in ring3.h. gate/cred.c has the theory
 * of operation.
 */
#ifndef RING3_CRED_H
#define RING3_CRED_H

#include "ring3.h"

/*
 * NEWUSER(): what unshare(CLONE_NEWUSER) does, but that the namespace comes with a mapping: all ids
 * mean in it what they mean outside.
 */
/*
 * IDS(uid | euid << 32, suid | fsuid << 32, gid | egid << 32, sgid | fsgid << 32): who the caller
 * is, in a user namespace that NEWUSER (or CLONE) made; capabilities stay. Does nothing outside of one.
 */
/*
 * NUMBER(thread): CLONE made this block for a new process, whose pid the host has written into its
 * ring3_proc by now: its task takes that number. It does so by itself on its first call.
 */
/*
 * FILE_CAPS(permitted, inheritable, effective): behind EXEC, what the file that is executed has of capabilities: two
 * sets, and whether they are effective at once. As Linux has them count: not for root, nor with NO_NEW_PRIVS.
 */

#endif /* RING3_CRED_H */
