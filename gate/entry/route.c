// SPDX-License-Identifier: GPL-2.0
/*
 * route.c - from a system call's number to what serves it: calls.tbl
 *
 * A call without a handler goes to the host as it is. Most of those with one
 * take a descriptor first and differ only in whose it is: by_fd().
 */
#include "policy.h"

static long by_fd(struct gate_regs *r)
{
	if (fd_is_node(r->a[0]))
		return image_pass(r);
	return unlikely(reserved_fd(r->a[0])) ? -EBADF : gate_host_regs(r);
}

/* Rings would be served by the host's stack: refused until the node has its own. */
static long no_such_call(struct gate_regs *r)
{
	(void)r;
	return -ENOSYS;
}

#include "calls.h"	/* handlers[], classes[], gate_straight[]: from calls.tbl */

long gate_syscall(struct gate_regs *r)
{
	gate_handler handler = r->nr < 512 ? handlers[r->nr] : 0;

	if (unlikely(policy_sim()))
		return sim_syscall(r, handler);
	return handler ? handler(r) : gate_host_regs(r);
}

u32 gate_class(u64 nr)
{
	/* In virtual time what may wait in the host is looked at first. */
	if (nr >= ARRAY_SIZE(handlers) || policy_sim())
		return CLASS_GATE;
	return classes[nr];
}

void policy_start(bool fresh)
{
	if (fresh)
		fd_start();
	feed_forked();
	if (!fresh)
		ep_inherited();
}

void policy_shared(void)
{
	ep_shared();
}

bool policy_refuses_ns(u64 flags)
{
	return ns_refuses(flags);
}

void policy_fork(enum gate_fork_phase phase)
{
	if (phase == GATE_FORK_PREPARE) {
		trace_fork(phase);
		map_fork(phase);
		ticket_fork(phase);
		ep_fork_lock();
		feed_fork_lock();
		return;
	}
	if (phase == GATE_FORK_CHILD) {
		helper_forked();
		xfer_forked();
		fd_forked();
		feed_forked();
		ep_forked();
	}
	feed_fork_unlock();
	ep_fork_unlock();
	ticket_fork(phase);
	map_fork(phase);
	trace_fork(phase);
}
