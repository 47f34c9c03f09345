// SPDX-License-Identifier: GPL-2.0
/*
 * route.c - looks up the handler of a system call by its number, in the tables of calls.tbl
 *
 * A call without a handler goes to the host as it is.
 */
#include "internal.h"

long gate_syscall(struct gate_regs *r)
{
	gate_handler handler = r->nr < ARRAY_SIZE(gate_handlers) ? gate_handlers[r->nr] : NULL;
	long ret;

	if (unlikely(gate.sim))
		return gate_life.sim(r, handler);
	ret = handler ? handler(r) : gate_host_regs(r);
	return unlikely(ret == -EINTR) ? own_interrupted(r->nr) : ret;
}

u32 gate_class(u64 nr)
{
	/* In virtual time, a call that may wait on the host has to be examined first. */
	if (nr >= ARRAY_SIZE(gate_classes) || gate.sim)
		return CLASS_GATE;
	return gate_classes[nr];
}
