// SPDX-License-Identifier: GPL-2.0
/*
 * tables.c - the tables of handlers, and of hooks for fork, exec and closed descriptors
 *
 * This file is above all others of the gate, and no file calls it. A file calls functions of files below it. To
 * reach one above it, it calls through a table of gate.h, and the tables are filled in here. `make lint' checks
 * that (tools/shape).
 */
#include "internal.h"
#include "policy.h"

static long on_host(struct gate_regs *r)
{
	return gate_host_regs(r);
}

/*
 * Most calls with a handler have a descriptor as their first argument. A descriptor of the node: the call goes to
 * the node as it is. One of the host: to this handler.
 */
static inline long by_owner(struct gate_regs *r, gate_handler host)
{
	if (fd_is_node(r->a[0]))
		return image_pass(r);
	return unlikely(reserved_fd(r->a[0])) ? -EBADF : host(r);
}

static long by_fd(struct gate_regs *r)
{
	return by_owner(r, on_host);
}

/* io_uring: the host's network stack would serve its rings. It is refused until the node has its own. */
static long no_such_call(struct gate_regs *r)
{
	(void)r;
	return -ENOSYS;
}

#include "calls.h"	/* gate_handlers[], gate_classes[], gate_straight_calls[]: from calls.tbl */

/* Locks are taken in this order and released in reverse. The lock of the signal handlers is taken after them. */
static const struct gate_fork forks[] = {
	{ &trace_lock, NULL },
	{ &map_lock, NULL },
	{ &ticket_lock, ticket_forked },
	{ &ep_lock, ep_forked },
	{ &feed_lock, feed_none },
	{ NULL, fd_forked },
	{ NULL, source_forked },
	{ NULL, helper_forked },
	{ &gate_filter_lock, NULL },
	{ &gate_areas_lock, NULL },
	{ &gate_patch_lock, NULL },
	{ &gate_heap_lock, NULL },
	{ &gate_limits_lock, NULL },
	{ &gate_raised_lock, NULL },
	{ NULL, NULL },
};

static void life_start(bool fresh)
{
	if (fresh)
		fd_start();
	feed_none();
	if (!fresh) {
		ep_inherited();
		source_inherited();
	}
}

const struct gate_life gate_life = {
	.start = life_start,
	.forks = forks,
	.stamp = map_stamp,
	.numbers = fd_numbers,
	.inherit = fd_inherit,
	.shared = ep_shared,
	.refuses_ns = ns_refuses,
	.exec = fd_exec,
	.exe = proc_exe,
	.grow = limits_grow,
	.others = helper_others,
	.unshare_files = ns_unshare_files,
	.sim = sim_syscall,
	.sim_ends = sim_futex_ends,
	.sim_ids = sim_ids_start,
};

const struct gate_fd_life gate_fd_life = {
	.closed = ep_close,
	.dup = ep_dup,
	.proxy_closed = feed_close,
};
