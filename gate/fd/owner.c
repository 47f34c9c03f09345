// SPDX-License-Identifier: GPL-2.0
/*
 * owner.c - F_SETOWN and its like: which process gets SIGIO and SIGURG of a node's descriptor
 *
 * The program names processes by the host's pids. The node's tasks mostly have the same pids (task.c in the port);
 * the caller's own are always translated. Process groups and sessions are the host's. The gate repeats their
 * changes in the node, so that the node can find the members of a group. A group that was made outside of the node
 * has only the caller as a member there.
 */
#include "policy.h"

#include <linux/sockios.h>

struct owner_ex {		/* struct f_owner_ex, asm-generic/fcntl.h */
	s32 type;		/* F_OWNER_TID 0, F_OWNER_PID 1, F_OWNER_PGRP 2 */
	s32 pid;
};

/* Translates a pid of the program for the node; 0 stays 0: no owner. */
static long to_node(s32 type, s32 pid)
{
	if (!pid)
		return 0;
	if (type == F_OWNER_TID && pid == host_syscall0(__NR_gettid))
		return image_call0(__NR_gettid);
	if (type == F_OWNER_PID && pid == host_syscall0(__NR_getpid))
		return image_call0(__NR_getpid);
	return pid > 0 ? pid : -ESRCH;
}

static s32 to_host(s32 type, s32 pid)
{
	if (type == F_OWNER_TID && pid == image_call0(__NR_gettid))
		return host_syscall0(__NR_gettid);
	if (pid == image_call0(__NR_getpid))
		return host_syscall0(type == F_OWNER_PGRP ? __NR_getpgrp : __NR_getpid);
	return pid;
}

/* All variants are made by F_SETOWN_EX and F_GETOWN_EX. */
static long set_owner(u32 fd, s32 type, s32 pid)
{
	struct owner_ex ex = { .type = type };
	long there = to_node(type, pid), ret;

	if (there < 0)
		return there;
	ex.pid = there;
	ret = image_call3(__NR_fcntl, fd, F_SETOWN_EX, &ex);
	if (ret != -ESRCH || type != F_OWNER_PGRP || pid != host_syscall0(__NR_getpgrp))
		return ret;
	ex.type = F_OWNER_PID;
	ex.pid = image_call0(__NR_getpid);
	return image_call3(__NR_fcntl, fd, F_SETOWN_EX, &ex);
}

/* If the host succeeded, the node can refuse only a group that it does not have. */
long do_setpgid(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (!ret)
		image_pass(r);
	return ret;
}

long do_setsid(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (ret >= 0)
		image_pass(r);
	return ret;
}

static long get_owner(u32 fd, struct owner_ex *ex)
{
	long ret = image_call3(__NR_fcntl, fd, F_GETOWN_EX, ex);

	if (!ret)
		ex->pid = to_host(ex->type, ex->pid);
	return ret;
}

static long set_owner_signed(u32 fd, s32 pid)
{
	if (pid == (-2147483647 - 1))
		return -EINVAL;
	return pid < 0 ? set_owner(fd, F_OWNER_PGRP, -pid) : set_owner(fd, F_OWNER_PID, pid);
}

long owner_fcntl(struct gate_regs *r)
{
	void *user = user_ptr(r->a[2]);
	u32 fd = r->a[0];
	struct owner_ex ex;
	long ret;

	switch ((u32)r->a[1]) {
	case F_SETOWN:
		return set_owner_signed(fd, r->a[2]);
	case F_GETOWN:
		ret = get_owner(fd, &ex);
		return ret ? ret : ex.type == F_OWNER_PGRP ? -ex.pid : ex.pid;
	case F_SETOWN_EX:
		if (gate_copy_in(&ex, user, sizeof(ex)))
			return -EFAULT;
		if ((u32)ex.type > F_OWNER_PGRP)
			return -EINVAL;
		return set_owner(fd, ex.type, ex.pid);
	default:
		ret = get_owner(fd, &ex);
		return ret ? ret : gate_copy_out(user, &ex, sizeof(ex));
	}
}

long owner_ioctl(struct gate_regs *r)
{
	void *user = user_ptr(r->a[2]);
	u32 fd = r->a[0];
	struct owner_ex ex;
	long ret;
	s32 pid;

	if ((u32)r->a[1] == FIOSETOWN || (u32)r->a[1] == SIOCSPGRP) {
		if (gate_copy_in(&pid, user, sizeof(pid)))
			return -EFAULT;
		return set_owner_signed(fd, pid);
	}
	ret = get_owner(fd, &ex);
	if (ret)
		return ret;
	pid = ex.type == F_OWNER_PGRP ? -ex.pid : ex.pid;
	return gate_copy_out(user, &pid, sizeof(pid));
}
