// SPDX-License-Identifier: GPL-2.0
/*
 * fd.c - makes, duplicates and closes descriptors in two tables at once
 *
 * Theory of operation: see policy.h. The order of steps ensures that no other thread sees a descriptor that is half
 * made or half closed:
 *
 *   make    host placeholder -> node file at that number -> bit set
 *   close   node file closed -> bit cleared -> host placeholder closed
 *   dup2    onto a host file:  node file at the number -> bit set -> placeholder
 *           over a node file:  host file replaces the placeholder -> bit cleared ->
 *           node file closed
 *
 * While the bit is clear, all calls on the number fail with EBADF, since the host knows only a placeholder there.
 */
#include "fd/numbers.h"

#include <linux/stat.h>

/*
 * The descriptor of which all placeholders are duplicates. Its name is for the users of /proc/PID/fd outside of the
 * node.
 */
static long placeholder_make(void)
{
	static const char proc[] = "/proc/self/fd/";
	char path[sizeof(proc) + 12];
	long mem, fd;

	mem = host_syscall2(__NR_memfd_create, (long)PLACEHOLDER_NAME, 1 /* MFD_CLOEXEC */);
	if (mem < 0)
		return mem;
	gate_format(path, sizeof(path), "%s%ld", proc, mem);
	fd = host_syscall3(__NR_openat, AT_FDCWD, (long)path, O_PATH | O_CLOEXEC);
	if (fd < 0)		/* /proc is not mounted */
		fd = host_syscall3(__NR_openat, AT_FDCWD, (long)"/", O_PATH | O_CLOEXEC);
	host_syscall1(__NR_close, mem);
	return fd;
}

/*
 * All numbers of the gate's row are kept occupied: a free one would be given to the program as soon as it raises
 * its limit. Unused slots hold a placeholder.
 */
void fd_start(void)
{
	struct rlimit64 lim;
	long fd, slot;

	lim = fds_raise(gate_fd_base + GATE_RESERVED_FDS);
	fd = placeholder_make();
	if (fd < 0)
		gate_die(125, "cannot make a placeholder for the node's descriptors (error %ld)",
			 -fd);
	for (slot = 0; slot < GATE_RESERVED_FDS; slot++) {
		if (host_syscall3(__NR_fcntl, gate_fd(slot), F_GETFD, 0) < 0)
			host_syscall3(__NR_dup3, fd, gate_fd(slot), 0);
	}
	if (!reserved_fd(fd))
		host_syscall1(__NR_close, fd);
	fds_back(lim);
	if (host_syscall3(__NR_fcntl, gate_fd(FD_PLACEHOLDER), F_GETFD, 0) < 0)
		gate_die(125, "cannot keep a placeholder for the node's descriptors");
}

/* Makes a placeholder at the lowest free number of the host's table. */
long fd_placeholder(bool cloexec)
{
	long cmd = cloexec ? F_DUPFD_CLOEXEC : F_DUPFD;

	return host_syscall3(__NR_fcntl, gate_fd(FD_PLACEHOLDER), cmd, 0);
}

/*
 * Makes a node descriptor at a number that the host has just allocated and no side owns yet. Closes the number if
 * the node refuses. An accept() that was interrupted because another thread's exec failed keeps its number: on
 * Linux such an exec fails before it stops other threads.
 */
long fd_adopt(long fd, u64 nr, u64 a0, u64 a1, u64 a2, u64 a3)
{
	long ret;

	if (fd < 0)
		return fd;
	if (fd >= RING3_FDS_MAX) {
		ret = -EMFILE;
	} else {
		do
			ret = image_call(RING3_NR_AT, fd, nr, a0, a1, a2, a3);
		while (gate_call_goes_on(ret));
	}
	if (ret < 0) {
		host_syscall1(__NR_close, fd);
		return ret;
	}
	map_set(gate_fdmap()->node, fd);
	return fd;
}

long fd_create(bool cloexec, u64 nr, u64 a0, u64 a1, u64 a2, u64 a3)
{
	long fd;

	fd_making_begins();
	fd = fd_placeholder(cloexec);
	fd_making_at(fd);
	return fd_making_ends(fd_adopt(fd, nr, a0, a1, a2, a3));
}

/* pipe2() in the node. */
long fd_create_pipe(u32 flags, u64 user)
{
	s32 pair[2];
	long ret;

	fd_making_begins();
	pair[0] = fd_placeholder(flags & O_CLOEXEC);
	fd_making_at(pair[0]);
	if (pair[0] < 0)
		return fd_making_ends(pair[0]);
	pair[1] = fd_placeholder(flags & O_CLOEXEC);
	fd_making_at(pair[1]);
	ret = pair[1];
	if (pair[1] >= 0)
		ret = pair[1] < RING3_FDS_MAX ? image_call3(RING3_NR_PIPE, pair[0], pair[1], flags) : -EMFILE;
	if (ret < 0) {
		host_syscall1(__NR_close, pair[0]);
		if (pair[1] >= 0)
			host_syscall1(__NR_close, pair[1]);
		return fd_making_ends(ret);
	}
	map_set(gate_fdmap()->node, pair[0]);
	map_set(gate_fdmap()->node, pair[1]);
	fd_making_ends(0);
	if (gate_copy_out(user_ptr(user), pair, sizeof(pair))) {
		fd_drop(pair[0]);
		fd_drop(pair[1]);
		return -EFAULT;
	}
	return 0;
}

/* A descriptor of the host is about to be closed: drops its proxy in the node. */
static void proxy_drop(u32 fd)
{
	if (!fd_has_proxy(fd))
		return;
	gate_fd_life.proxy_closed(fd);
	map_clear(gate_fdmap()->proxy, fd);
	image_call1(__NR_close, fd);
}

long do_close(struct gate_regs *r)
{
	u32 fd = r->a[0];
	long ret;

	if (fd_is_node(fd)) {
		ret = image_call1(__NR_close, fd);
		gate_fd_life.closed(fd);
		map_clear(gate_fdmap()->node, fd);
		fd_closing();
		host_syscall1(__NR_close, fd);
		return ret;
	}
	if (unlikely(reserved_fd(fd)))
		return -EBADF;
	proxy_drop(fd);
	return gate_host_regs(r);
}

/* Closes a descriptor of the node that the program has never seen. */
void fd_drop(u32 fd)
{
	struct gate_regs close = { .nr = __NR_close, .a = { fd } };

	do_close(&close);
}

/* One range of numbers that has no number of the gate's row in it. */
static long close_stretch(u32 first, u32 last, u32 flags)
{
	struct ring3_fdmap *map = gate_fdmap();
	u32 top = last < RING3_FDS_MAX ? last : RING3_FDS_MAX - 1;
	u64 both;
	u32 fd;

	if (first <= top) {
		image_call3(__NR_close_range, first, top, flags);
		for (fd = first; fd <= top && !(flags & CLOSE_RANGE_CLOEXEC); fd++) {
			both = READ_ONCE(map->node[fd / 64]) | READ_ONCE(map->proxy[fd / 64]);
			if (!both) {
				fd |= 63;
				continue;
			}
			if (map_test(map->proxy, fd)) {
				gate_fd_life.proxy_closed(fd);
				map_clear(map->proxy, fd);
			}
			if (map_test(map->node, fd)) {
				gate_fd_life.closed(fd);
				map_clear(map->node, fd);
			}
		}
	}
	fd_closing();
	return host_syscall3(__NR_close_range, first, last, flags);
}

long do_close_range(struct gate_regs *r)
{
	u32 first = r->a[0], last = r->a[1], flags = r->a[2];
	u32 kept = gate_fd_base;
	long ret = 0;

	if ((flags & ~(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC)) || first > last)
		return -EINVAL;
	if (flags & CLOSE_RANGE_UNSHARE) {
		ret = gate_life.unshare_files();
		if (ret)
			return ret;
		flags &= ~CLOSE_RANGE_UNSHARE;
	}
	if (last < kept || first >= kept + GATE_RESERVED_FDS)
		return close_stretch(first, last, flags);
	if (first < kept)
		ret = close_stretch(first, kept - 1, flags);
	if (last >= kept + GATE_RESERVED_FDS && !ret)
		ret = close_stretch(kept + GATE_RESERVED_FDS, last, flags);
	return ret;
}

/* The host has duplicated the placeholder `from` as `to`, after fd_making_begins(): makes the node do the same. */
long dup_follow(u32 from, long to, bool cloexec)
{
	long ret;

	if (to < 0)
		return fd_making_ends(to);
	fd_making_at(to);
	if (to >= RING3_FDS_MAX)
		ret = -EMFILE;
	else
		ret = image_call3(__NR_dup3, from, to, cloexec ? O_CLOEXEC : 0);
	if (ret < 0) {
		host_syscall1(__NR_close, to);
		return fd_making_ends(ret);
	}
	gate_fd_life.dup(from, to);
	map_set(gate_fdmap()->node, to);
	return fd_making_ends(to);
}

long do_dup(struct gate_regs *r)
{
	u32 fd = r->a[0];

	if (fd_is_node(fd)) {
		fd_making_begins();
		return dup_follow(fd, host_syscall1(__NR_dup, fd), false);
	}
	return unlikely(reserved_fd(fd)) ? -EBADF : gate_host_regs(r);
}

/* dup3() with from != to. */
static long dup_onto(u32 from, u32 to, u32 flags)
{
	struct ring3_fdmap *map = gate_fdmap();
	bool from_node = fd_is_node(from), to_node = fd_is_node(to);
	long ret;

	if (unlikely(reserved_fd(from) || reserved_fd(to)))
		return -EBADF;

	if (!from_node) {
		if (to_node) {
			fd_replacing(1);
			fd_closing();
		}
		ret = host_syscall3(__NR_dup3, from, to, flags);
		if (ret >= 0 && to_node) {
			gate_fd_life.closed(to);
			map_clear(map->node, to);
			image_call1(__NR_close, to);
		}
		if (to_node)
			fd_replacing(-1);
		if (ret < 0)
			return ret;
		if (!to_node)
			proxy_drop(to);
		return ret;
	}

	if (to_node) {
		ret = image_call3(__NR_dup3, from, to, flags);
		if (ret < 0)
			return ret;
		/* Both placeholders may be twins of epolls: the host's table has to be changed, too. */
		gate_fd_life.closed(to);
		ret = host_syscall3(__NR_dup3, from, to, flags);
		gate_fd_life.dup(from, to);
		return ret;
	}

	if (to >= RING3_FDS_MAX)
		return -EBADF;
	if (host_syscall3(__NR_fcntl, to, F_GETFD, 0) < 0) {
		/* A free number: no other thread uses it, and the host decides whether it is allowed. */
		fd_making_begins();
		ret = host_syscall3(__NR_dup3, from, to, flags);
		return dup_follow(from, ret, flags & O_CLOEXEC);
	}
	proxy_drop(to);
	ret = image_call3(__NR_dup3, from, to, flags);
	if (ret < 0)
		return ret;
	map_set(map->node, to);
	ret = host_syscall3(__NR_dup3, from, to, flags);
	if (ret < 0) {
		map_clear(map->node, to);
		image_call1(__NR_close, to);
		return ret;
	}
	gate_fd_life.dup(from, to);
	return ret;
}

long do_dup2(struct gate_regs *r)
{
	u32 from = r->a[0], to = r->a[1];

	if (from == to) {
		if (fd_is_node(from))
			return to;
		return unlikely(reserved_fd(from)) ? -EBADF : gate_host_regs(r);
	}
	return dup_onto(from, to, 0);
}

long do_dup3(struct gate_regs *r)
{
	u32 from = r->a[0], to = r->a[1], flags = r->a[2];

	if ((flags & ~O_CLOEXEC) || from == to)
		return -EINVAL;
	return dup_onto(from, to, flags);
}
