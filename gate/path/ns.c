// SPDX-License-Identifier: GPL-2.0
/*
 * ns.c - namespaces and BPF: calls about the network as a whole
 *
 * Theory of operation
 * -------------------
 * Network namespaces are the node's, user namespaces exist on both sides (cred.c), all other kinds are the host's.
 * The name of a network namespace is a bind mount of an nsfs file below /run/netns. So it is a mount of the node:
 * /run/netns is a path of the node (path.c), and neither the host nor another node sees any of it.
 *
 * `ip netns exec` takes a new mount namespace and mounts a /sys in it that shows the new network. So the node's
 * tasks have mount namespaces, too. Calls that concern both sides (a new namespace, the propagation of mounts of /,
 * mounting and unmounting /sys) are made on both, on the host first. If the host refuses, the call is refused.
 *
 * With one exception: an unprivileged owner of a node is root on it. If the host refuses such a program for lack of
 * privilege, the call goes on to the node. The host's side of the call would matter only for mounts on the host,
 * which the host refuses that program anyway.
 */
#include "internal.h"
#include "policy.h"
#include "ring3.h"

#include <linux/close_range.h>
#include <linux/mount.h>
#include <linux/nsfs.h>

/* Linux allows these only for programs with one thread. */
#define UNSHARE_ALONE	(CLONE_NEWUSER | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define UNSHARE_KNOWN	(CLONE_THREAD | CLONE_FS | CLONE_NEWNS | CLONE_SIGHAND | CLONE_VM | CLONE_FILES | CLONE_SYSVSEM | \
			 CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWCGROUP | \
			 CLONE_NEWTIME)
#define SETNS_ALONE	(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME)
#define SETNS_KNOWN	(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUSER | CLONE_NEWPID | \
			 CLONE_NEWCGROUP | CLONE_NEWTIME)

#define PROPAGATION	(MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE)

/* bpf(2) commands that make a descriptor (linux/bpf.h; all of its commands are < 64). */
#define BPF_MAKES_FD	((1ull << 0) | (1ull << 5) | (1ull << 7) | (1ull << 13) |	\
			 (1ull << 14) | (1ull << 17) | (1ull << 18) | (1ull << 19) |	\
			 (1ull << 28) | (1ull << 30) | (1ull << 32) | (1ull << 33) |	\
			 (1ull << 36))

/*
 * The gate and the image know threads, processes and the vCPU's owner by the host's pids. In a new PID namespace
 * they would be others: at its first wait, such a process would find the node's keeper gone.
 */
bool ns_refuses(u64 flags)
{
	if (likely(!(flags & CLONE_NEWPID)))
		return false;
	gate_warn("a new pid namespace below a node is not supported");
	return true;
}

long do_bpf(struct gate_regs *r)
{
	u32 cmd = r->a[0];

	if (cmd < 64 && (BPF_MAKES_FD >> cmd & 1))
		return fd_create(true, __NR_bpf, cmd, r->a[1], r->a[2], 0);
	return image_pass(r);
}

/*
 * True if a call that concerns both sides goes on to the node after this result of the host. In a sandbox the host has no
 * namespaces and mounts for anybody.
 */
static bool host_lets(long ret)
{
	if (!ret)
		return true;
	return (ret == -EPERM && host_syscall0(__NR_geteuid)) || ((ret == -EPERM || ret == -ENOSYS) && own_confined());
}

/* A thread with a descriptor table of its own would need a feeder of its own; the gate has one for each process. */
static bool files_refused(void)
{
	if (!helper_others() && !feed_others())
		return false;
	gate_warn("unsharing descriptors (CLONE_FILES, CLOSE_RANGE_UNSHARE) in a process with threads, or in another's memory, is not supported");
	return true;
}

/* Done by a call that closes nothing: the seccomp filters of containers often refuse unshare(). */
static long host_unshare_files(void)
{
	long ret = host_syscall3(__NR_close_range, ~0U, ~0U, CLOSE_RANGE_UNSHARE);

	return ret == -ENOSYS || ret == -EINVAL ? host_syscall1(__NR_unshare, CLONE_FILES) : ret;
}

/*
 * Gives the process a descriptor table of its own on both sides, if it shares one with another process. The host's
 * comes first, since the host may refuse. Then numbers that others made or gave up in between are dropped, and the
 * feeder starts anew.
 */
long ns_unshare_files(void)
{
	u64 map = gate_thread()->fdmap;
	bool paused, mine;
	long ret;

	if (files_refused())
		return -EOPNOTSUPP;
	mine = feed_mine();
	paused = feed_pause();
	ret = host_unshare_files();
	if (!ret)
		ret = image_call1(__NR_unshare, CLONE_FILES);
	if (gate_thread()->fdmap != map)
		fd_apart();
	if (gate_thread()->fdmap != map && mine) {
		ep_apart();
		feed_none();
	} else if (paused) {
		feed_resume();
	}
	return ret;
}

/*
 * A new network namespace is made by the node. Linux makes all namespaces or none, so the gate's own refusals come
 * first.
 */
static long unshare_both(u64 flags)
{
	u64 node = flags & (CLONE_NEWNET | CLONE_NEWNS), host;
	long ret = 0;

	if (flags & ~(u64)UNSHARE_KNOWN)
		return -EINVAL;
	if (ns_refuses(flags))
		return -EPERM;
	if ((flags & CLONE_FILES) && files_refused())
		return -EOPNOTSUPP;
	host = flags & ~(u64)(CLONE_FILES | CLONE_NEWNET);
	if (host)
		ret = host_syscall1(__NR_unshare, host);
	if (ret && !(host == CLONE_NEWNS && host_lets(ret)))
		return ret;
	if (!ret && (flags & CLONE_NEWUSER))
		sim_ids_nested(gate_tcb());
	ret = flags & CLONE_NEWUSER ? image_call0(RING3_NR_NEWUSER) : 0;
	if (!ret && node)
		ret = image_call1(__NR_unshare, node);
	if (!ret && (flags & CLONE_FILES))
		ret = ns_unshare_files();
	return ret;
}

long do_unshare(struct gate_regs *r)
{
	bool paused = (r->a[0] & UNSHARE_ALONE) && feed_pause();
	long ret = unshare_both(r->a[0]);

	if (paused)
		feed_resume();
	return ret;
}

/* The node does not know PR_SET_DUMPABLE. Elsewhere it knows rights that decide, which a sandbox's processes have not got. */
static bool may_look_at(s32 pid)
{
	struct iovec none = { NULL, 1 };

	return !own_confined() || host_syscall6(__NR_process_vm_readv, pid, (long)&none, 1, (long)&none, 1, 0) != -EPERM;
}

/* setns(pidfd, CLONE_NEWNET | ...): the network namespace on the node, the others on the host. */
static long setns_process(struct gate_regs *r, s32 pid)
{
	u32 others = (u32)r->a[1] & ~(u32)CLONE_NEWNET;
	char path[40];
	long fd, ret = 0;

	if (!may_look_at(pid))
		return -EPERM;
	gate_format(path, sizeof(path), "/proc/%d/ns/net", proc_find(pid) ? pid : 1);
	fd = fd_create(true, __NR_openat, AT_FDCWD, (u64)path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)	/* not permitted to look at the process: open() has another error for that */
		return fd == -ENOENT ? -ESRCH : fd == -EACCES ? -EPERM : fd;
	/* All processes of a sandbox have the same namespaces of the host, which root alone may enter. */
	if (others && proc_find(pid) && !(others & ~(u32)SETNS_KNOWN) && own_confined())
		ret = host_syscall0(__NR_geteuid) ? -EPERM : 0;
	else if (others)
		ret = host_syscall2(__NR_setns, (u32)r->a[0], others);
	if (!ret && (others & CLONE_NEWUSER))
		ret = cred_follow_user_ns();
	if (!ret)
		ret = image_call2(__NR_setns, fd, CLONE_NEWNET);
	fd_drop(fd);
	return ret;
}

/*
 * A pidfd without a pid here: its process has ended or is in another PID namespace. Or the descriptor is not a
 * pidfd.
 */
static long setns_nobody(u32 fd)
{
	long ret;

	if (host_syscall3(__NR_fcntl, fd, F_GETFD, 0) < 0)
		return -EBADF;
	ret = host_syscall4(__NR_pidfd_send_signal, fd, 0, 0, 0);
	if (ret == -EBADF)
		return -EINVAL;
	if (ret == -ESRCH)
		return -ESRCH;
	gate_warn("setns: a process of another pid namespace is not supported");
	return -EPERM;
}

static long setns_host(struct gate_regs *r, long kind)
{
	u32 fd = r->a[0], type = r->a[1];
	long ret;
	s32 pid;

	if (kind >= 0 && type && type != (u64)kind)
		return -EINVAL;
	if (kind == CLONE_NEWNET) {
		gate_warn("setns: a network namespace of the host cannot be entered from a node");
		return -EPERM;
	}
	/* The host refuses every descriptor with these, and a sandbox's list each of its calls. */
	if (kind < 0 && (!type || (type & ~(u32)SETNS_KNOWN)))
		return host_syscall3(__NR_fcntl, fd, F_GETFD, 0) < 0 ? -EBADF : -EINVAL;
	if (ns_refuses(kind < 0 ? 0 : kind))
		return -EPERM;
	if (type & (CLONE_NEWNET | CLONE_NEWPID)) {
		pid = pidfd_pid(fd);
		if (pid <= 0)
			return setns_nobody(fd);
		return ns_refuses(type) ? -EPERM : setns_process(r, pid);
	}
	ret = gate_host_regs(r);
	if (!ret && (kind == CLONE_NEWUSER || (type & CLONE_NEWUSER)))
		ret = cred_follow_user_ns();
	return ret;
}

long do_setns(struct gate_regs *r)
{
	long kind, ret;
	bool paused;

	if (fd_is_node(r->a[0]))
		return image_pass(r);
	kind = host_syscall3(__NR_ioctl, (u32)r->a[0], NS_GET_NSTYPE, 0);
	paused = (((kind < 0 ? 0 : kind) | (u32)r->a[1]) & SETNS_ALONE) && feed_pause();
	ret = setns_host(r, kind);
	if (paused)
		feed_resume();
	return ret;
}

/* /sys, or the root directory, below which /sys is. */
static bool is_both(const char *target)
{
	return !strcmp(target, "/sys") || !strcmp(target, "/sys/") || !strcmp(target, "/");
}

static bool is_sysfs(u64 type)
{
	char s[8];

	return gate_strncpy_in(s, user_ptr(type), sizeof(s)) == 5 && !strcmp(s, "sysfs");
}

static bool ends_in_ns_net(const char *path)
{
	size_t len = strlen(path);

	return len > 7 && !strcmp(path + len - 7, "/ns/net");
}

long do_mount(struct gate_regs *r)
{
	char source[PATH_BUF], target[PATH_BUF];
	struct gate_regs node = *r;
	bool bind = (r->a[3] & MS_BIND) && !(r->a[3] & (MS_REMOUNT | PROPAGATION));
	bool node_source = bind && path_owner(AT_FDCWD, r->a[0], source) == PATH_NODE;
	long ret;

	if (path_owner(AT_FDCWD, r->a[1], target) == PATH_NODE) {
		if (bind && !node_source) {
			gate_warn("mount: a file of the host cannot be bound on %s of the node", target);
			return -EINVAL;
		}
		if (bind)
			node.a[0] = (u64)source;
		node.a[1] = (u64)target;
		return image_pass(&node);
	}
	if (node_source && ends_in_ns_net(source)) {
		gate_warn("mount: a network namespace can have a name below /run/netns only");
		return -EINVAL;
	}
	if (bind && unlikely(proc_exe_call(r, r->a[0], &ret)))
		return ret;
	ret = gate_host_regs(r);
	if (!host_lets(ret) || gate_strncpy_in(target, user_ptr(r->a[1]), sizeof(target)) < 0 ||
	    !is_both(target))
		return ret;
	if ((r->a[3] & PROPAGATION) || (strcmp(target, "/") && is_sysfs(r->a[2])))
		return image_pass(r);
	return ret;
}

long do_umount(struct gate_regs *r)
{
	struct gate_regs node = *r;
	char target[PATH_BUF];
	long ret;

	if (path_owner(AT_FDCWD, r->a[0], target) == PATH_NODE) {
		node.a[0] = (u64)target;
		return image_pass(&node);
	}
	ret = gate_host_regs(r);
	if (!host_lets(ret) || gate_strncpy_in(target, user_ptr(r->a[0]), sizeof(target)) < 0 ||
	    !is_both(target) || !strcmp(target, "/"))
		return ret;
	return image_pass(r);
}
