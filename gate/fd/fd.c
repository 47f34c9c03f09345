// SPDX-License-Identifier: GPL-2.0
/*
 * fd.c - descriptors: made, duplicated and closed in two tables at once
 *
 * Theory of operation: see policy.h. The order of steps is what keeps threads
 * from seeing a number that is half made or half gone:
 *
 *   make    host placeholder -> node file at that number -> bit set
 *   close   node file closed -> bit cleared -> host placeholder closed
 *   dup2    onto a host file:  node file at the number -> bit set -> placeholder
 *           over a node file:  host file replaces the placeholder -> bit cleared ->
 *           node file closed
 *
 * While the bit is clear a placeholder answers EBADF by itself.
 */
#include "policy.h"

#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <linux/stat.h>

/* linux/sockios.h: about routes and interfaces, then the drivers' own. */
#define SIOC_FIRST	SIOCADDRT
#define SIOC_LAST	(SIOCPROTOPRIVATE - 1)
#define SIOC_DRIVER	SIOCDEVPRIVATE
#define SIOC_DRIVER_END	(SIOCDEVPRIVATE + 15)

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY	1027
#endif

/*
 * The descriptor of which all placeholders are duplicates. Its name is for people
 * who look at /proc/PID/fd from outside.
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
	if (fd < 0)		/* no /proc here */
		fd = host_syscall3(__NR_openat, AT_FDCWD, (long)"/", O_PATH | O_CLOEXEC);
	host_syscall1(__NR_close, mem);
	return fd < 0 ? fd : gate_fd_keep(fd, FD_PLACEHOLDER);
}

/*
 * No number of the reserved row may be left free: the program would get it as soon
 * as it raises its limit. Slots that nothing is in yet get a placeholder.
 */
void fd_start(void)
{
	struct rlimit64 lim;
	long fd, slot;

	fd = placeholder_make();
	if (fd < 0)
		gate_die(125, "cannot make a placeholder for the node's descriptors (error %ld)",
			 -fd);
	lim = fds_raise(gate_fd_base + GATE_RESERVED_FDS);
	for (slot = 0; slot < GATE_RESERVED_FDS; slot++) {
		if (host_syscall3(__NR_fcntl, gate_fd(slot), F_GETFD, 0) < 0)
			host_syscall3(__NR_dup3, fd, gate_fd(slot), 0);
	}
	fds_back(lim);
}

/*
 * A child has the node's descriptors as they were when the image made its task, and the host's as they
 * were later, when that copied the table. What another thread gave up in between would be the
 * node's in the child for ever, with whatever the host puts at that number next. So a thread that gives a number up
 * on the host counts that before, and the child looks if the count is another than before its task was made.
 *
 * A lock that a fork holds from the one copy to the other would need no counts. But a vfork child runs while it is held, and may
 * be stopped or traced: all other threads would wait for it. And Linux shows the number that a waiting accept() has
 * (tests/oracle/accept_fork.c), so it can't be taken when the connection is there.
 */
static u32 closes;
static u32 replacing;		/* threads that give a number up on the host first, and in the node later */

static void closing(void)
{
	__atomic_fetch_add(&closes, 1, __ATOMIC_SEQ_CST);
}

/*
 * As well, a number that a thread is making holds a placeholder and is nobody's yet: in accept() for as long as
 * nobody connects. Linux's reserved number is neither a child's nor the next program's. So a thread that makes one counts that
 * before and after, and the child looks where one was on its way, or has become the node's after its task was made.
 * Count and end lie in one page, so that a child has them as they were at one time.
 */
#define MADE	(1ull << 32)
#define RACING	64		/* numbers that threads may have got, and not said so yet */

static struct {
	u64 count;		/* on their way: the lower half; made: the upper */
	u32 end;		/* no number from here on has been made */
} making __attribute__((aligned(16)));

static void making_begins(void)
{
	__atomic_fetch_add(&making.count, 1, __ATOMIC_SEQ_CST);
}

static void making_at(long fd)
{
	u32 end = READ_ONCE(making.end);

	while (unlikely(fd >= (long)end) &&
	       !__atomic_compare_exchange_n(&making.end, &end, fd + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

static long making_ends(long ret)
{
	__atomic_fetch_add(&making.count, MADE - 1, __ATOMIC_SEQ_CST);
	return ret;
}

/* The next number below `end` that holds a placeholder and is nobody's, from fd on. */
static u32 next_unmade(u32 fd, u32 end)
{
	const struct ring3_fdmap *map = gate_fdmap();
	struct stat ours, its;
	long flags;

	if (host_syscall2(__NR_fstat, gate_fd(FD_PLACEHOLDER), (long)&ours) ||
	    (ours.st_mode & S_IFMT) != S_IFREG)		/* without /proc it may be the program's just as well */
		return end;
	for (; fd < end; fd++) {
		if (map_test(map->node, fd) || reserved_fd(fd))
			continue;
		flags = host_syscall3(__NR_fcntl, fd, F_GETFL, 0);
		if (flags >= 0 && (flags & O_PATH) && !host_syscall2(__NR_fstat, fd, (long)&its) &&
		    its.st_dev == ours.st_dev && its.st_ino == ours.st_ino)
			return fd;
	}
	return end;
}

static u32 unmade_end(void)
{
	u32 end = READ_ONCE(making.end) + RACING;

	return end < RING3_FDS_MAX ? end : RING3_FDS_MAX;
}

u64 fd_numbers(void)
{
	u64 made = __atomic_load_n(&making.count, __ATOMIC_SEQ_CST) / MADE;
	u32 n = __atomic_load_n(&closes, __ATOMIC_SEQ_CST);

	/* One that it has never again: what is on its way counts for the child, too. */
	return made * MADE + (__atomic_load_n(&replacing, __ATOMIC_SEQ_CST) ? n - 1 : n);
}

/* The host finds that out, and refuses, before it looks for a member. */
bool fd_is_host_epoll(u32 fd)
{
	return host_syscall4(__NR_epoll_ctl, fd, EPOLL_CTL_DEL, fd, 0) == -EINVAL;
}

/* Is a placeholder, or an epoll's twin, still at this number on the host? */
static bool is_held(u32 fd)
{
	long flags = host_syscall3(__NR_fcntl, fd, F_GETFL, 0);

	return flags >= 0 && ((flags & O_PATH) || fd_is_host_epoll(fd));
}

void fd_forked(void)
{
	replacing = 0;		/* that thread is not here */
	if ((u32)making.count)
		making.count = (making.count / MADE + 1) * MADE;
}

static void drop_unmade(void)
{
	u32 end = unmade_end(), fd;

	for (fd = next_unmade(0, end); fd < end; fd = next_unmade(fd + 1, end)) {
		image_call1(__NR_close, fd);
		host_syscall1(__NR_close, fd);
	}
}

/* The next program's are those that are closed on exec; what is not is so from here on, until the exec fails. */
void fd_exec(bool begins)
{
	static u64 changed[RING3_FDS_MAX / 64] GATE_TABLE;
	u32 end, fd;

	if (likely(!(u32)__atomic_load_n(&making.count, __ATOMIC_SEQ_CST)))
		return;
	end = unmade_end();
	for (fd = next_unmade(0, end); fd < end; fd = next_unmade(fd + 1, end)) {
		/* What was noted for an exec that succeeded, of a process that shares our memory, is no more. */
		if (begins && !host_syscall3(__NR_fcntl, fd, F_GETFD, 0))
			map_set(changed, fd);
		else if (begins)
			map_clear(changed, fd);
		if (map_test(changed, fd))
			host_syscall3(__NR_fcntl, fd, F_SETFD, begins ? FD_CLOEXEC : 0);
		if (!begins)
			map_clear(changed, fd);
	}
}

void fd_inherit(u64 before)
{
	struct ring3_fdmap *map = gate_fdmap();
	u64 count = __atomic_load_n(&making.count, __ATOMIC_SEQ_CST);
	u32 fd;

	if (unlikely((u32)count || count / MADE != before / MADE))
		drop_unmade();
	if (likely(__atomic_load_n(&closes, __ATOMIC_SEQ_CST) == (u32)before))
		return;
	for (fd = 0; fd < RING3_FDS_MAX; fd++) {
		if (!(map->node[fd / 64] | map->proxy[fd / 64])) {
			fd |= 63;
		} else if (map_test(map->node, fd) && !is_held(fd)) {
			image_call1(__NR_close, fd);
			gate_fd_life.closed(fd);
			map_clear(map->node, fd);
		} else if (map_test(map->proxy, fd) && host_syscall3(__NR_fcntl, fd, F_GETFD, 0) < 0) {
			image_call1(__NR_close, fd);
			map_clear(map->proxy, fd);
		}
	}
}

/* A new placeholder at the lowest free number of the host. */
long fd_placeholder(bool cloexec)
{
	long cmd = cloexec ? F_DUPFD_CLOEXEC : F_DUPFD;

	return host_syscall3(__NR_fcntl, gate_fd(FD_PLACEHOLDER), cmd, 0);
}

/*
 * Makes a node descriptor at a number that the host has just given us and
 * owns nothing else; closes that number when the node says no. An accept() that another thread's exec
 * has stopped, and failed, has the number that it had: Linux's exec fails before it touches other threads.
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

	making_begins();
	fd = fd_placeholder(cloexec);
	making_at(fd);
	return making_ends(fd_adopt(fd, nr, a0, a1, a2, a3));
}

/* pipe2() in the node. */
long fd_create_pipe(u32 flags, u64 user)
{
	s32 pair[2];
	long ret;

	making_begins();
	pair[0] = fd_placeholder(flags & O_CLOEXEC);
	making_at(pair[0]);
	if (pair[0] < 0)
		return making_ends(pair[0]);
	pair[1] = fd_placeholder(flags & O_CLOEXEC);
	making_at(pair[1]);
	ret = pair[1];
	if (pair[1] >= 0)
		ret = pair[1] < RING3_FDS_MAX ? image_call3(RING3_NR_PIPE, pair[0], pair[1], flags) : -EMFILE;
	if (ret < 0) {
		host_syscall1(__NR_close, pair[0]);
		if (pair[1] >= 0)
			host_syscall1(__NR_close, pair[1]);
		return making_ends(ret);
	}
	map_set(gate_fdmap()->node, pair[0]);
	map_set(gate_fdmap()->node, pair[1]);
	making_ends(0);
	if (gate_copy_out(user_ptr(user), pair, sizeof(pair))) {
		fd_drop(pair[0]);
		fd_drop(pair[1]);
		return -EFAULT;
	}
	return 0;
}

/* A host number goes away: so does what stands for it in the node. */
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
		closing();
		host_syscall1(__NR_close, fd);
		return ret;
	}
	if (unlikely(reserved_fd(fd)))
		return -EBADF;
	proxy_drop(fd);
	return gate_host_regs(r);
}

/* For a descriptor of the node that the program has never seen. */
void fd_drop(u32 fd)
{
	struct gate_regs close = { .nr = __NR_close, .a = { fd } };

	do_close(&close);
}

/* One stretch of numbers without a reserved one in it. */
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
	closing();
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

/* The host has duplicated the placeholder `from` as `to`, after making_begins(): let the node follow. */
static long dup_follow(u32 from, long to, bool cloexec)
{
	long ret;

	if (to < 0)
		return making_ends(to);
	making_at(to);
	if (to >= RING3_FDS_MAX)
		ret = -EMFILE;
	else
		ret = image_call3(__NR_dup3, from, to, cloexec ? O_CLOEXEC : 0);
	if (ret < 0) {
		host_syscall1(__NR_close, to);
		return making_ends(ret);
	}
	gate_fd_life.dup(from, to);
	map_set(gate_fdmap()->node, to);
	return making_ends(to);
}

long do_dup(struct gate_regs *r)
{
	u32 fd = r->a[0];

	if (fd_is_node(fd)) {
		making_begins();
		return dup_follow(fd, host_syscall1(__NR_dup, fd), false);
	}
	return unlikely(reserved_fd(fd)) ? -EBADF : gate_host_regs(r);
}

/* dup3 proper: from != to. */
static long dup_onto(u32 from, u32 to, u32 flags)
{
	struct ring3_fdmap *map = gate_fdmap();
	bool from_node = fd_is_node(from), to_node = fd_is_node(to);
	long ret;

	if (unlikely(reserved_fd(from) || reserved_fd(to)))
		return -EBADF;

	if (!from_node) {
		if (to_node) {
			__atomic_fetch_add(&replacing, 1, __ATOMIC_SEQ_CST);
			closing();
		}
		ret = host_syscall3(__NR_dup3, from, to, flags);
		if (ret >= 0 && to_node) {
			gate_fd_life.closed(to);
			map_clear(map->node, to);
			image_call1(__NR_close, to);
		}
		if (to_node)
			__atomic_fetch_sub(&replacing, 1, __ATOMIC_SEQ_CST);
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
		/* Both placeholders may be epolls: the host's table has to follow. */
		gate_fd_life.closed(to);
		ret = host_syscall3(__NR_dup3, from, to, flags);
		gate_fd_life.dup(from, to);
		return ret;
	}

	if (to >= RING3_FDS_MAX)
		return -EBADF;
	if (host_syscall3(__NR_fcntl, to, F_GETFD, 0) < 0) {
		/* A free number: nobody uses it, the host says whether we may. */
		making_begins();
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

long do_fcntl(struct gate_regs *r)
{
	u32 fd = r->a[0], cmd = r->a[1];
	long ret;

	if (!fd_is_node(fd)) {
		if (unlikely(reserved_fd(fd)))
			return -EBADF;
		return gate_host_regs(r);
	}
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		making_begins();
		ret = host_syscall3(__NR_fcntl, fd, cmd, r->a[2]);
		return dup_follow(fd, ret, cmd == F_DUPFD_CLOEXEC);
	case F_SETFD:
		ret = image_pass(r);
		if (!ret)
			host_syscall3(__NR_fcntl, fd, cmd, r->a[2]);
		return ret;
	case F_DUPFD_QUERY:
		/* The node does not know the host's numbers: open, but surely another file. */
		if (!fd_is_node(r->a[2]) && !reserved_fd(r->a[2]) &&
		    host_syscall3(__NR_fcntl, r->a[2], F_GETFD, 0) >= 0)
			return 0;
		return image_pass(r);
	case F_SETOWN:
	case F_GETOWN:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
		return owner_fcntl(r);
	default:
		return image_pass(r);
	}
}

/*
 * Interfaces may be asked about through any socket: libc's if_nametoindex() takes
 * an AF_UNIX one. The answer has to be the node's.
 */
static bool ioctl_about_network(u32 fd, u32 cmd)
{
	struct stat st;

	if (likely(cmd < SIOC_FIRST || cmd > SIOC_DRIVER_END ||
		   (cmd > SIOC_LAST && cmd < SIOC_DRIVER)))
		return false;
	return !host_syscall2(__NR_fstat, fd, (long)&st) && (st.st_mode & S_IFMT) == S_IFSOCK;
}

static long ioctl_by_other_socket(struct gate_regs *r)
{
	struct gate_regs again = *r;
	long fd, ret;

	fd = fd_create(true, __NR_socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | O_CLOEXEC, 0, 0);
	if (fd < 0)
		return fd;
	again.a[0] = fd;
	ret = image_pass(&again);
	fd_drop(fd);
	return ret;
}

long do_ioctl(struct gate_regs *r)
{
	u32 fd = r->a[0], cmd = r->a[1];
	long ret;

	if (!fd_is_node(fd)) {
		if (unlikely(reserved_fd(fd)))
			return -EBADF;
		return ioctl_about_network(fd, cmd) ? ioctl_by_other_socket(r) : gate_host_regs(r);
	}
	switch (cmd) {
	case FIOCLEX:
	case FIONCLEX:
		ret = image_pass(r);
		if (!ret)
			host_syscall3(__NR_fcntl, fd, F_SETFD, cmd == FIOCLEX ? FD_CLOEXEC : 0);
		return ret;
	case FIOSETOWN:
	case SIOCSPGRP:
	case FIOGETOWN:
	case SIOCGPGRP:
		return owner_ioctl(r);
	case SIOCGSKNS:
	case NS_GET_USERNS:
		return fd_create(true, __NR_ioctl, fd, cmd, r->a[2], 0);
	default:
		return image_pass(r);
	}
}
