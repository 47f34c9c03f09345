/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_FUTEX_H
#define _ASM_RING3_FUTEX_H

/*
 * Programs' futexes are the host's; the node's own futex calls are not routed
 * to it. The generic UP versions serve robust lists and the like.
 */
#include <asm-generic/futex.h>

#endif
