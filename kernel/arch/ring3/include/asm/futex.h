/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_FUTEX_H
#define _ASM_RING3_FUTEX_H

/*
 * In real time programs' futexes are the host's. In virtual time (CONFIG_RING3_SIM) they are the node's, and the
 * generic UP versions are atomic: no other thread of the node runs meanwhile.
 */
#include <asm-generic/futex.h>

union futex_key;

/* turn/futex.c: the key of the futex in that page, whose offset is set already */
void ring3_futex_key(unsigned long page, union futex_key *key);

#endif
