// SPDX-License-Identifier: GPL-2.0
/*
 * mutex.c - a mutex on a host futex
 */
#include "internal.h"
#include <linux/futex.h>

void gate_lock(struct gate_mutex *m)
{
	u64 nap = 0;
	u32 was = 0;

	if (likely(__atomic_compare_exchange_n(&m->word, &was, 1, false, __ATOMIC_ACQUIRE,
					       __ATOMIC_RELAXED)))
		return;
	while (__atomic_exchange_n(&m->word, 2, __ATOMIC_ACQUIRE))
		if (unlikely(gate.nap))		/* virtual time: the owner may have lost the turn in a call of the node */
			gate.nap(&nap);
		else
			host_syscall4(__NR_futex, (long)&m->word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 2, 0);
}

bool gate_trylock(struct gate_mutex *m)
{
	u32 was = 0;

	return __atomic_compare_exchange_n(&m->word, &was, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

void gate_unlock(struct gate_mutex *m)
{
	if (__atomic_exchange_n(&m->word, 0, __ATOMIC_RELEASE) == 2 && likely(!gate.nap))
		host_syscall3(__NR_futex, (long)&m->word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1);
}
