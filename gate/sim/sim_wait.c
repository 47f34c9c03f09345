// SPDX-License-Identifier: GPL-2.0
/*
 * sim_wait.c - waits for what is the host's, in virtual time
 *
 * Theory of operation
 * -------------------
 * Unix sockets, FIFOs and file locks are the host's. A thread that waited for one there would keep the turn, and no other
 * program could make it ready. So the gate makes the call so that it does not wait. Where it would have to, the thread sleeps in
 * the node, 10 us of virtual time at first and 1 ms at most (sim_nap()), and looks again. What it looks at changes by what
 * programs of the node do, so two runs agree.
 */
#include "internal.h"
#include "policy.h"
#include <linux/stat.h>

#define PIPEFS_MAGIC		0x50495045
#define MSG_DONTWAIT		0x40
#define MSG_WAITALL		0x100
#define LOCK_NB			4
#define LOCK_UN			8
#define F_OFD_SETLK		37
#define F_OFD_SETLKW		38
#define IN_OPEN			0x20
#define IN_NONBLOCK		O_NONBLOCK
#define IN_CLOEXEC		O_CLOEXEC

enum kind {
	KIND_FILE,		/* never waits, but for locks */
	KIND_INSIDE,		/* programs of the simulation alone change it */
	KIND_OUTSIDE,
};

static enum kind kind_of(s32 fd)
{
	u64 fs[15];		/* struct statfs: its type comes first */
	struct stat st;

	if (host_syscall2(__NR_fstat, fd, (long)&st))
		return KIND_FILE;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return KIND_FILE;
	case S_IFSOCK:
		return KIND_INSIDE;
	case S_IFIFO:
		return !host_syscall2(__NR_fstatfs, fd, (long)fs) && fs[0] == PIPEFS_MAGIC ? KIND_OUTSIDE : KIND_INSIDE;
	}
	return KIND_OUTSIDE;
}

static bool interrupted(void)
{
	return READ_ONCE(gate_thread()->sigpending);
}

/* Does the call fail where it would have to wait, and has it done nothing then? */
static bool would_wait(const struct gate_regs *r, u16 events)
{
	struct pollfd p = { .fd = r->a[0], .events = events };

	return !host_syscall3(__NR_poll, (long)&p, 1, 0);
}

/*
 * A call on a descriptor of the host's, with O_NONBLOCK for as long as it lasts: nothing else runs meanwhile. A large write
 * to a stream may so be cut short, as by a signal.
 */
static long at_once(struct gate_regs *r, gate_handler handler, long flags)
{
	long ret;

	host_syscall3(__NR_fcntl, r->a[0], F_SETFL, flags | O_NONBLOCK);
	ret = handler(r);
	host_syscall3(__NR_fcntl, r->a[0], F_SETFL, flags);
	return ret;
}

/* What is left of a write() or send() to a stream, or of a recv() of all that was asked for. */
static bool goes_on(struct gate_regs *left, long ret)
{
	bool all = left->nr == __NR_write || left->nr == __NR_sendto ||
		   (left->nr == __NR_recvfrom && (left->a[3] & MSG_WAITALL));

	if (ret <= 0 || !all || (u64)ret >= left->a[2])
		return false;
	left->a[1] += ret;
	left->a[2] -= ret;
	return true;
}

static bool dont_wait(const struct gate_regs *r)
{
	switch (r->nr) {
	case __NR_recvfrom:
	case __NR_sendto:
		return r->a[3] & MSG_DONTWAIT;
	case __NR_recvmsg:
	case __NR_sendmsg:
		return r->a[2] & MSG_DONTWAIT;
	}
	return false;
}

/* SO_RCVTIMEO or SO_SNDTIMEO of a socket, as a deadline. */
static u64 deadline_of(s32 fd, bool sends)
{
	s64 tv[2] = { 0 };
	s32 len = sizeof(tv);

	if (host_syscall5(__NR_getsockopt, fd, 1 /* SOL_SOCKET */, sends ? 21 : 20, (long)tv, (long)&len) ||
	    (!tv[0] && !tv[1]))
		return WAIT_FOREVER;
	return wait_until_ns((u64)tv[0] * 1000000000ull + (u64)tv[1] * 1000);
}

long sim_by_host(struct gate_regs *r, gate_handler handler, u16 events)
{
	struct gate_regs left = *r;
	u64 ns = 0, deadline;
	enum kind kind;
	long ret, flags, done = 0;

	if (fd_is_node(r->a[0]))
		return handler(r);
	flags = host_syscall3(__NR_fcntl, r->a[0], F_GETFL, 0);
	if (flags < 0 || (flags & (O_NONBLOCK | O_PATH)) || dont_wait(r))
		return handler(r);
	kind = kind_of(r->a[0]);
	if (kind == KIND_FILE)
		return handler(r);
	deadline = kind == KIND_INSIDE ? deadline_of(r->a[0], events == POLLOUT) : WAIT_FOREVER;
	for (;;) {
		if (kind == KIND_OUTSIDE) {
			/* A terminal, or somebody else has the other end: O_NONBLOCK would be theirs, too. */
			ret = would_wait(&left, events) ? -EAGAIN : handler(&left);
		} else {
			ret = at_once(&left, handler, flags);
			if (ret > 0)
				done += ret;
			if (goes_on(&left, ret))
				continue;
		}
		if (ret != -EAGAIN)
			return done ? done : ret;
		if (wait_now() >= deadline)
			return done ? done : -EAGAIN;
		sim_nap(&ns);
		if (interrupted())
			return done ? done : -ERESTARTSYS;
	}
}

/* flock() and fcntl(F_SETLKW). A cycle of waits is not found (EDEADLK). */
long sim_lock(struct gate_regs *r, gate_handler handler)
{
	struct gate_regs now = *r;
	u64 ns = 0;
	long ret;

	if (fd_is_node(r->a[0]))
		return handler(r);
	if (r->nr == __NR_flock) {
		if (r->a[1] & (LOCK_NB | LOCK_UN))
			return handler(r);
		now.a[1] |= LOCK_NB;
	} else if (r->a[1] == F_SETLKW) {
		now.a[1] = F_SETLK;
	} else if (r->a[1] == F_OFD_SETLKW) {
		now.a[1] = F_OFD_SETLK;
	} else {
		return handler(r);
	}
	for (;;) {
		ret = handler(&now);
		if (ret != -EAGAIN && ret != -EACCES)
			return ret;
		sim_nap(&ns);
		if (interrupted())
			return -ERESTARTSYS;
	}
}

/* The path leads to a FIFO of the host's? */
static bool is_fifo(s32 dirfd, u64 path, u64 flags)
{
	struct stat st;

	return !(flags & (O_PATH | O_CREAT)) &&
	       !host_syscall4(__NR_newfstatat, dirfd, path, (long)&st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) &&
	       (st.st_mode & S_IFMT) == S_IFIFO;
}

/* Its first writer: somebody opens it after us, or has written already. */
static long wait_for_writer(long fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN } };
	char path[32];
	u64 ns = 0;
	long ret = 0;

	p[1] = (struct pollfd){ .fd = host_syscall1(__NR_inotify_init1, IN_NONBLOCK | IN_CLOEXEC), .events = POLLIN };
	gate_format(path, sizeof(path), "/proc/self/fd/%d", (s32)fd);
	if (p[1].fd >= 0)
		host_syscall3(__NR_inotify_add_watch, p[1].fd, (long)path, IN_OPEN);
	while (!host_syscall3(__NR_poll, (long)p, 2, 0) && !ret) {
		sim_nap(&ns);
		if (interrupted())
			ret = -ERESTARTSYS;
	}
	host_syscall1(__NR_close, p[1].fd);
	return ret;
}

/* open() and openat(). One end of a FIFO waits for the other. */
long sim_open(struct gate_regs *r, gate_handler handler)
{
	bool at = r->nr == __NR_openat;
	u64 flags = r->a[1 + at], ns = 0;
	struct gate_regs now = *r;
	long fd, ret;

	if ((flags & O_NONBLOCK) || (flags & O_ACCMODE) == O_RDWR ||
	    !is_fifo(at ? (s32)r->a[0] : AT_FDCWD, r->a[at], flags))
		return handler(r);
	now.a[1 + at] |= O_NONBLOCK;
	for (;;) {
		fd = handler(&now);
		if (fd != -ENXIO || (flags & O_ACCMODE) != O_WRONLY)
			break;
		sim_nap(&ns);
		if (interrupted())
			return -ERESTARTSYS;
	}
	if (fd < 0 || fd_is_node(fd))
		return fd;
	ret = (flags & O_ACCMODE) == O_RDONLY ? wait_for_writer(fd) : 0;
	if (ret) {
		host_syscall1(__NR_close, fd);
		return ret;
	}
	host_syscall3(__NR_fcntl, fd, F_SETFL, host_syscall3(__NR_fcntl, fd, F_GETFL, 0) & ~(long)O_NONBLOCK);
	return fd;
}
