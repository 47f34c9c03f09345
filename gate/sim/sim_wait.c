// SPDX-License-Identifier: GPL-2.0
/*
 * sim_wait.c - waits for what is the host's, in virtual time
 *
 * Theory of operation
 * -------------------
 * Unix sockets, FIFOs and file locks are the host's. A thread that waited for one there would keep the turn, and no other
 * program could make it ready. So the gate makes each such call in a form that does not wait. If the call would have to,
 * the thread sleeps in the node (HOST_WAIT) until another thread of the simulated host has made a call that may have changed
 * something (HOST_CHANGED), and repeats its call. So it continues at the virtual time of that other call.
 *
 * Some changes are not announced: those of programs in another network namespace, and of calls that sim_changes() does not
 * know. So the thread also repeats its call after 1 ms, and then at growing intervals (sim_wait()). For descriptors from
 * outside of the simulation, a terminal or a pipe, it does so each ms (sim_nap()).
 */
#include "internal.h"
#include "policy.h"
#include <asm/socket.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/stat.h>

#define PIPEFS_MAGIC		0x50495045
#define OUTSIDE_MS		10000	/* less than a turn may take: ring3_sim_patience */
#define SOCK_STREAM		1
#define MSG_WAITALL		0x100
#define LOCK_NB			4
#define LOCK_UN			8
#define F_OFD_SETLK		37
#define F_OFD_SETLKW		38

enum sim_kind sim_kind_of(s32 fd)
{
	u64 fs[15];		/* struct statfs: its type comes first */
	struct stat st;

	if (host_syscall2(__NR_fstat, fd, (long)&st))
		return SIM_FILE;
	switch (st.st_mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return SIM_FILE;
	case S_IFSOCK:
		return SIM_INSIDE;
	case S_IFIFO:
		return !host_syscall2(__NR_fstatfs, fd, (long)fs) && fs[0] == PIPEFS_MAGIC ? SIM_OUTSIDE : SIM_INSIDE;
	}
	return SIM_OUTSIDE;
}

bool sim_interrupted(void)
{
	return READ_ONCE(gate_thread()->sigpending);
}

/* May the call change something that others wait for? Asked before the call, since it may close the descriptor. */
bool sim_changes(const struct gate_regs *r)
{
	if (likely(!READ_ONCE(gate.region->host_waiters)))
		return false;
	switch (r->nr) {
	case __NR_close:		/* of any file: its locks go */
	case __NR_close_range:
	case __NR_dup2:
	case __NR_dup3:
	case __NR_creat:
	case __NR_open:
	case __NR_openat:
	case __NR_openat2:
	case __NR_flock:
	case __NR_sendfile:
	case __NR_splice:
	case __NR_tee:
	case __NR_vmsplice:
	case __NR_semctl:
	case __NR_msgctl:
		return true;
	case __NR_fcntl:
		return r->a[1] == F_SETLK || r->a[1] == F_SETLKW || r->a[1] == F_OFD_SETLK || r->a[1] == F_OFD_SETLKW;
	case __NR_read:
	case __NR_readv:
	case __NR_preadv2:
	case __NR_write:
	case __NR_writev:
	case __NR_pwritev2:
	case __NR_recvfrom:
	case __NR_recvmsg:
	case __NR_recvmmsg:
	case __NR_sendto:
	case __NR_sendmsg:
	case __NR_sendmmsg:
	case __NR_accept:
	case __NR_accept4:
	case __NR_connect:
	case __NR_bind:
	case __NR_listen:
	case __NR_shutdown:
		return !fd_is_node(r->a[0]) && sim_kind_of(r->a[0]) != SIM_FILE;
	}
	return false;
}

/*
 * Would the call wait for a process outside of the simulation? When such a process reads the program's output no program of
 * the simulation can see. So for writing the thread waits in real time, with the turn, unless it takes very long.
 */
bool sim_would_wait(s32 fd, u16 events)
{
	struct pollfd p = { .fd = fd, .events = events };
	long ret;

	do
		ret = host_syscall3(__NR_poll, (long)&p, 1, events == POLLOUT ? OUTSIDE_MS : 0);
	while (ret == -EINTR);
	return !ret;
}

/* Which argument of a call holds MSG_ flags; 0: it has none. */
static u32 msg_flags_at(const struct gate_regs *r)
{
	switch (r->nr) {
	case __NR_recvfrom:
	case __NR_sendto:
	case __NR_recvmmsg:
	case __NR_sendmmsg:
		return 3;
	case __NR_recvmsg:
	case __NR_sendmsg:
		return 2;
	}
	return 0;
}

static bool dont_wait(const struct gate_regs *r)
{
	u32 at = msg_flags_at(r);

	if (r->nr == __NR_preadv2 || r->nr == __NR_pwritev2)
		return r->a[5] & RWF_NOWAIT;
	return at && (r->a[at] & MSG_DONTWAIT);
}

/*
 * Makes a call on a descriptor of the host in a form that does not wait. O_NONBLOCK applies to all processes that share the
 * open file, and others run when a handler calls the node. So it is used only for calls without a flag of their own, whose
 * handlers do not call the node. A large write to a stream may be cut short, as by a signal. The flags are read each time,
 * since another thread may have changed them meanwhile.
 */
static long at_once(const struct gate_regs *r, gate_handler handler)
{
	u32 at = msg_flags_at(r);
	struct gate_regs now = *r;
	long ret, flags;

	if (at) {
		now.a[at] |= MSG_DONTWAIT;
		return handler(&now);
	}
	flags = host_syscall3(__NR_fcntl, r->a[0], F_GETFL, 0);
	if (flags < 0 || (flags & O_NONBLOCK))
		return handler(&now);
	host_syscall3(__NR_fcntl, r->a[0], F_SETFL, flags | O_NONBLOCK);
	ret = handler(&now);
	host_syscall3(__NR_fcntl, r->a[0], F_SETFL, flags);
	return ret;
}

static bool is_stream(s32 fd)
{
	s32 type = 0, len = sizeof(type);

	return !host_syscall5(__NR_getsockopt, fd, SOL_SOCKET, SO_TYPE, (long)&type, (long)&len) && type == SOCK_STREAM;
}

/* Does the call continue with the rest: a write() or send() to a stream, or a recv() with MSG_WAITALL? */
static bool goes_on(struct gate_regs *left, long ret)
{
	bool all = left->nr == __NR_write || left->nr == __NR_sendto ||
		   (left->nr == __NR_recvfrom && (left->a[3] & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL);

	if (ret <= 0 || !all || (u64)ret >= left->a[2] || (left->nr == __NR_recvfrom && !is_stream(left->a[0])))
		return false;
	left->a[1] += ret;
	left->a[2] -= ret;
	return true;
}

/* SO_RCVTIMEO or SO_SNDTIMEO of a socket, as a deadline. */
u64 sim_deadline_of(s32 fd, bool sends)
{
	s64 tv[2] = { 0 };
	s32 len = sizeof(tv);

	if (host_syscall5(__NR_getsockopt, fd, SOL_SOCKET, sends ? SO_SNDTIMEO_OLD : SO_RCVTIMEO_OLD, (long)tv, (long)&len) ||
	    (!tv[0] && !tv[1]))
		return WAIT_FOREVER;
	return wait_until_ns((u64)tv[0] * 1000000000ull + (u64)tv[1] * 1000);
}

long sim_by_host(struct gate_regs *r, gate_handler handler, u16 events)
{
	struct gate_regs left = *r;
	u64 ns = 0, deadline, left_ns;
	enum sim_kind kind;
	long ret, flags, done = 0;

	if (fd_is_node(r->a[0]))
		return handler(r);
	flags = host_syscall3(__NR_fcntl, r->a[0], F_GETFL, 0);
	if (flags < 0 || (flags & (O_NONBLOCK | O_PATH)) || dont_wait(r))
		return handler(r);
	kind = sim_kind_of(r->a[0]);
	if (kind == SIM_FILE)
		return handler(r);
	deadline = kind == SIM_INSIDE ? sim_deadline_of(r->a[0], events == POLLOUT) : WAIT_FOREVER;
	for (;;) {
		if (kind == SIM_OUTSIDE) {
			/* O_NONBLOCK would apply to the processes outside, too. */
			ret = sim_would_wait(left.a[0], events) ? -EAGAIN : handler(&left);
		} else {
			ret = at_once(&left, handler);
			if (ret > 0) {
				done += ret;
				sim_changed();
			}
			if (goes_on(&left, ret))
				continue;
		}
		if (ret != -EAGAIN)
			return done ? done : ret;
		left_ns = wait_left(deadline);
		if (!left_ns)
			return done ? done : -EAGAIN;
		if (kind == SIM_INSIDE)
			sim_wait(&ns, left_ns);
		else
			sim_nap(&ns);
		if (sim_interrupted())
			return done ? done : deadline == WAIT_FOREVER ? -ERESTARTSYS : -EINTR;
	}
}

/* Waits until a descriptor of the host has one of these events: returns what it has. */
long sim_wait_host(s32 fd, u16 events)
{
	struct pollfd p = { .fd = fd, .events = events };
	bool outside = sim_kind_of(fd) == SIM_OUTSIDE;
	u64 ns = 0;
	long ret;

	for (;;) {
		if (outside)
			sim_would_wait(fd, events);
		ret = host_syscall3(__NR_poll, (long)&p, 1, 0);
		if (ret)
			return ret < 0 ? ret : p.revents;
		if (outside)
			sim_nap(&ns);
		else
			sim_wait(&ns, WAIT_FOREVER);
		if (sim_interrupted())
			return -ERESTARTSYS;
	}
}

/* flock() and fcntl(F_SETLKW): repeats the request when others have changed something. Does not detect cycles (EDEADLK). */
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
		if (ret != -EAGAIN)
			return ret;
		sim_wait(&ns, WAIT_FOREVER);
		if (sim_interrupted())
			return -ERESTARTSYS;
	}
}

/* Does the path lead to a FIFO of the host? */
static bool is_fifo(s32 dirfd, u64 path, u64 flags)
{
	struct stat st;

	return !(flags & O_PATH) &&
	       !host_syscall4(__NR_newfstatat, dirfd, path, (long)&st, flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) &&
	       (st.st_mode & S_IFMT) == S_IFIFO;
}

/*
 * Waits until the FIFO has a writer. poll() reports a writer that has written, or has closed the FIFO again since it was
 * opened here. read() fails with EAGAIN if there is a writer that has done neither.
 */
static long wait_for_writer(long fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	u64 ns = 0;
	char c;

	while (host_syscall3(__NR_poll, (long)&p, 1, 0) <= 0 && host_syscall3(__NR_read, fd, (long)&c, 1) != -EAGAIN) {
		sim_wait(&ns, WAIT_FOREVER);
		if (sim_interrupted())
			return -ERESTARTSYS;
	}
	return 0;
}

/* open() and its relatives: returns the flags, and in *call a form that does not wait. False: the flags are not known. */
static bool open_flags(struct gate_regs *call, struct open_how *how, u64 *flags)
{
	switch (call->nr) {
	case __NR_creat:
		call->nr = __NR_open;
		call->a[2] = call->a[1];
		call->a[1] = O_CREAT | O_WRONLY | O_TRUNC;
		/* fallthrough */
	case __NR_open:
		*flags = call->a[1];
		call->a[1] |= O_NONBLOCK;
		return true;
	case __NR_openat:
		*flags = call->a[2];
		call->a[2] |= O_NONBLOCK;
		return true;
	}
	/* A larger structure has fields that are not known here. */
	if (call->a[3] != sizeof(*how) || gate_copy_in(how, user_ptr(call->a[2]), sizeof(*how)))
		return false;
	*flags = how->flags;
	how->flags |= O_NONBLOCK;
	call->a[2] = (u64)how;
	return true;
}

/* One end of a FIFO waits for the other. */
long sim_open(struct gate_regs *r, gate_handler handler)
{
	bool at = r->nr == __NR_openat || r->nr == __NR_openat2;
	struct gate_regs now = *r;
	struct open_how how;
	u64 flags, ns = 0;
	long fd, ret;

	if (!open_flags(&now, &how, &flags) || (flags & O_NONBLOCK) || (flags & O_ACCMODE) == O_RDWR ||
	    !is_fifo(at ? (s32)r->a[0] : AT_FDCWD, r->a[at], flags))
		return handler(r);
	for (;;) {
		fd = handler(&now);
		if (fd != -ENXIO || (flags & O_ACCMODE) != O_WRONLY)
			break;
		sim_wait(&ns, WAIT_FOREVER);
		if (sim_interrupted())
			return -ERESTARTSYS;
	}
	if (fd < 0 || fd_is_node(fd))
		return fd;
	sim_changed();
	ret = (flags & O_ACCMODE) == O_RDONLY ? wait_for_writer(fd) : 0;
	if (ret) {
		host_syscall1(__NR_close, fd);
		return ret;
	}
	host_syscall3(__NR_fcntl, fd, F_SETFL, host_syscall3(__NR_fcntl, fd, F_GETFL, 0) & ~(long)O_NONBLOCK);
	return fd;
}
