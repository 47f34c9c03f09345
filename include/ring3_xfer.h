/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_xfer.h - data between files of the host and a node's sockets
 *
 * Calls of ring3's own, whose numbers are in ring3.h. gate/xfer.c is its only user.
 */
#ifndef RING3_XFER_H
#define RING3_XFER_H

#include "ring3.h"

#define RING3_SENDFILE_MAX	65536u	/* bytes of one call */

/*
 * SENDFILE(out, in, pos, count, flags, s64 *got): from descriptor `in` of the host, at pos, into the TCP
 * socket `out`: the host writes what it has of the file in memory into the very pages that are sent.
 * flags: MSG_MORE or 0. *got: bytes read, fewer than count at the file's end, and where the host
 * would have to wait for a disk. Bytes sent, of those; send()'s errors, then *got says what was
 * read; or -EOPNOTSUPP: nothing was done, as the socket is of another kind or the
 * host says no: go another way.
 */

#endif /* RING3_XFER_H */
