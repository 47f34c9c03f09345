/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_park.h - descriptors of a node on their way from one process to another
 *
 * Calls of ring3's own, whose numbers are in ring3.h, and what the gate
 * tells the keeper. gate/ticket.c has the theory of operation.
 */
#ifndef RING3_PARK_H
#define RING3_PARK_H

#include "ring3.h"

/*
 * PARK(fd, key): keeps a reference to a descriptor's file under a key, for whoever comes
 * with it. -EEXIST: the key is in use.
 */
/*
 * UNPARK(key, fd, flags): installs the file at number fd, which must be free. Without
 * RING3_UNPARK_KEEP nobody else gets it. fd -1 forgets the key. -ENOENT: no such key;
 * -ESTALE: its file was taken before.
 */
#define RING3_UNPARK_CLOEXEC	1u
#define RING3_UNPARK_KEEP	2u
/*
 * GRAB(pid, fd, to): the node's file at number fd of host process pid, close-on-exec, at number
 * `to` of the caller, which must be free: what pidfd_getfd() does. -ESRCH: no process of the
 * node; -EBADF: not the node's there.
 */

/*
 * A ticket stands for a parked descriptor on the host: one end of a pair of unix sockets. The
 * other goes to the keeper with this message, over the socket of ring3_join.h. When it
 * hangs up, nobody holds the ticket any more, and the keeper has the node forget the key.
 */
struct ring3_ticket {
	r3_u64 key;		/* SO_COOKIE of the ticket */
};

#endif /* RING3_PARK_H */
