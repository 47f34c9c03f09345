// SPDX-License-Identifier: GPL-2.0
/*
 * stage.c - names of unix sockets in a sandbox
 *
 * There the warden binds a socket to a file of its own, whose name has the name in it that the program has given
 * (ring3/sandbox/src/sockets.rs):
 *
 *   3, kind, three digits, name
 *
 * The kind is f of a file's name, a of an abstract one. In the name 1 stands for a slash, 2 for a NUL; 4 comes before a byte that
 * would mean something else, which has the bit 0x40 too.
 */
#include "policy.h"

#define STAGE		3
#define STAGE_BYTES	5	/* before the name */
#define SLASH		1
#define NUL		2
#define ESCAPE		4
#define ESCAPED		0x40

u32 stage_name(char *path, u32 len)
{
	bool is_abstract;
	u32 from, to;

	if (likely(len < STAGE_BYTES || path[0] != STAGE || (path[1] != 'a' && path[1] != 'f')))
		return len;
	is_abstract = path[1] == 'a';
	to = is_abstract;
	for (from = STAGE_BYTES; from < len && path[from]; from++) {
		if (path[from] == ESCAPE && from + 1 < len)
			path[to++] = path[++from] & ~ESCAPED;
		else if (path[from] == SLASH)
			path[to++] = '/';
		else
			path[to++] = path[from] == NUL ? 0 : path[from];
	}
	path[is_abstract ? 0 : to] = 0;
	return to + !is_abstract;
}
