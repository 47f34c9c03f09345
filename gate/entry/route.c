// SPDX-License-Identifier: GPL-2.0
/*
 * route.c - from a system call's number to what serves it, by the tables of calls.tbl
 *
 * A call without a handler goes to the host as it is.
 */
#include "internal.h"

long gate_syscall(struct gate_regs *r)
{
	gate_handler handler = r->nr < ARRAY_SIZE(gate_handlers) ? gate_handlers[r->nr] : NULL;

	if (unlikely(gate.sim))
		return gate_life.sim(r, handler);
	return handler ? handler(r) : gate_host_regs(r);
}

u32 gate_class(u64 nr)
{
	/* In virtual time what may wait in the host is looked at first. */
	if (nr >= ARRAY_SIZE(gate_classes) || gate.sim)
		return CLASS_GATE;
	return gate_classes[nr];
}
