// SPDX-License-Identifier: GPL-2.0
/*
 * ns.c - namespaces and BPF: calls that concern the network as a whole
 */
#include "policy.h"

#include <linux/nsfs.h>

/* bpf(2) commands that make a descriptor (linux/bpf.h; all of its commands are < 64). */
#define BPF_MAKES_FD	((1ull << 0) | (1ull << 5) | (1ull << 7) | (1ull << 13) |	\
			 (1ull << 14) | (1ull << 17) | (1ull << 18) | (1ull << 19) |	\
			 (1ull << 28) | (1ull << 30) | (1ull << 32) | (1ull << 33) |	\
			 (1ull << 36))

long do_bpf(struct gate_regs *r)
{
	u32 cmd = r->a[0];

	if (cmd < 64 && (BPF_MAKES_FD >> cmd & 1))
		return fd_create(true, __NR_bpf, cmd, r->a[1], r->a[2], 0);
	return image_pass(r);
}

/*
 * A new network namespace is the node's business. Unsharing descriptors from
 * other threads would need a new fdmap: refused while there are any.
 */
long do_unshare(struct gate_regs *r)
{
	u64 flags = r->a[0];
	long ret = 0;

	if ((flags & CLONE_FILES) && helper_others()) {
		gate_warn("unshare(CLONE_FILES) in a process with threads is not supported");
		return -EOPNOTSUPP;
	}
	/* Alone, the table is ours already; the feeder has to keep sharing it. */
	flags &= ~(u64)CLONE_FILES;
	if (flags & ~(u64)CLONE_NEWNET)
		ret = host_syscall1(__NR_unshare, flags & ~(u64)CLONE_NEWNET);
	if (!ret && (flags & CLONE_NEWNET))
		ret = image_call1(__NR_unshare, CLONE_NEWNET);
	return ret;
}

long do_setns(struct gate_regs *r)
{
	u32 fd = r->a[0], type = r->a[1];

	if (fd_is_node(fd))
		return image_pass(r);
	if (type == CLONE_NEWNET ||
	    host_syscall3(__NR_ioctl, fd, NS_GET_NSTYPE, 0) == CLONE_NEWNET) {
		gate_warn("setns: a network namespace of the host cannot be entered from a node");
		return -EPERM;
	}
	return gate_host_regs(r);
}
