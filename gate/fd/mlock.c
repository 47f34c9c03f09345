// SPDX-License-Identifier: GPL-2.0
/*
 * mlock.c - mlockall() of the program's memory only
 *
 * Each process of the node maps the node's whole memory, up to the largest size that it may have. The host would
 * allocate and lock all of it, or refuse, since it counts for RLIMIT_MEMLOCK. So the gate locks the existing
 * mappings one by one, without the node's and its own. Locking future mappings (MCL_FUTURE) is left to the host.
 */
#include "policy.h"

#ifndef MCL_CURRENT
#define MCL_CURRENT	1		/* asm-generic/mman.h */
#define MCL_FUTURE	2
#define MCL_ONFAULT	4
#define MLOCK_ONFAULT	1
#endif

static long lock_one(u64 start, u64 end, u32 flags)
{
	long ret;

	if (end <= start || (start < RING3_SPACE_END && end > RING3_GATE_BASE) || start >> 47)
		return 0;
	/*
	 * First without its pages, which only limit and privilege can refuse. A page that can't be made is no error
	 * on Linux.
	 */
	ret = host_syscall3(__NR_mlock2, start, end - start, MLOCK_ONFAULT);
	if (!ret && !(flags & MLOCK_ONFAULT))
		host_syscall3(__NR_mlock2, start, end - start, 0);
	return ret == -ENOMEM || ret == -EPERM ? ret : 0;
}

long do_mlockall(struct gate_regs *r)
{
	u64 flags = r->a[0], start, end;
	struct own_maps m;
	long ret = 0;

	if (!(flags & MCL_CURRENT) || (flags & ~(u64)(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)))
		return gate_host_regs(r);
	if (!own_maps_open(&m))		/* /proc is not mounted: lock everything, the node's memory too */
		return gate_host_regs(r);
	if (flags & MCL_FUTURE)
		ret = host_syscall1(__NR_mlockall, flags & ~(u64)MCL_CURRENT);
	while (own_maps_next(&m, &start, &end))
		if (!ret)
			ret = lock_one(start, end, flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
	if (ret)
		host_syscall0(__NR_munlockall);
	return ret;
}
