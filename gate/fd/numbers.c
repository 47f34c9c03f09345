// SPDX-License-Identifier: GPL-2.0
/*
 * numbers.c - descriptor numbers that change hands while another thread forks or executes a program
 */
#include "fd/numbers.h"

#include <linux/stat.h>

/*
 * A fork copies two tables at two times: the node's when the image makes the child's task, the host's later. If
 * another thread closes a descriptor in between, its number would stay the node's in the child for ever, while the
 * host may reuse it. So a thread that gives a number up on the host increments `closes' before it does. The child
 * compares the count with that from before its task was made; if they differ, it drops what the host has closed
 * (drop_closed()).
 *
 * Why not a lock that a fork holds from the one copy to the other? A vfork child runs while it is held, and may be
 * stopped or traced: all other threads would wait for it. Nor can accept() take its number when the connection is
 * there: on Linux the number of a waiting accept() is taken, and programs see that. It was tried: a file that is
 * opened meanwhile gets the number, and tests/oracle/accept_fork.c differs in four lines.
 */
static u32 closes;
static u32 replacing;		/* threads that are giving a number up on the host first, and in the node later */

void fd_replacing(int more)
{
	__atomic_fetch_add(&replacing, more, __ATOMIC_SEQ_CST);
}

void fd_closing(void)
{
	__atomic_fetch_add(&closes, 1, __ATOMIC_SEQ_CST);
}

/*
 * In the same way, a number that a thread is making holds a placeholder and has no owner yet; accept() waits in
 * that state. On Linux such a number exists neither in a child nor after exec. So a thread counts a number before
 * it makes it, and after that. The child searches for such placeholders if one was being made, or became the node's
 * after its task was made. Count and end are in one page, so that the child's copy of them is consistent.
 */
#define MADE	(1ull << 32)
#define RACING	64		/* numbers that other threads may have been given without having raised `end' */

static struct {
	u64 count;		/* lower half: numbers being made; upper half: numbers made */
	u32 end;		/* no number from here on has been made */
} making __attribute__((aligned(16)));

void fd_making_begins(void)
{
	__atomic_fetch_add(&making.count, 1, __ATOMIC_SEQ_CST);
}

void fd_making_at(long fd)
{
	u32 end = READ_ONCE(making.end);

	while (unlikely(fd >= (long)end) &&
	       !__atomic_compare_exchange_n(&making.end, &end, fd + 1, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST))
		;
}

long fd_making_ends(long ret)
{
	__atomic_fetch_add(&making.count, MADE - 1, __ATOMIC_SEQ_CST);
	return ret;
}

/* The first number from fd on and below `end' that holds a placeholder and has no owner. */
static u32 next_unmade(u32 fd, u32 end)
{
	const struct ring3_fdmap *map = gate_fdmap();
	struct stat ours, its;
	long flags;

	if (host_syscall2(__NR_fstat, gate_fd(FD_PLACEHOLDER), (long)&ours) ||
	    (ours.st_mode & S_IFMT) != S_IFREG)		/* without /proc the placeholder can't be told from a file of the program */
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

	/* A value that never comes again: while a number is being replaced, the child has to look. */
	return made * MADE + (__atomic_load_n(&replacing, __ATOMIC_SEQ_CST) ? n - 1 : n);
}

/* The host refuses to add an epoll to itself before it looks for a member: EINVAL tells an epoll. */
bool fd_is_host_epoll(u32 fd)
{
	return host_syscall4(__NR_epoll_ctl, fd, EPOLL_CTL_DEL, fd, 0) == -EINVAL;
}

/* Does the host still have a placeholder or an epoll's twin at this number? */
static bool is_held(u32 fd)
{
	long flags = host_syscall3(__NR_fcntl, fd, F_GETFL, 0);

	return flags >= 0 && ((flags & O_PATH) || fd_is_host_epoll(fd));
}

void fd_forked(void)
{
	replacing = 0;		/* that thread is not in the child */
	if ((u32)making.count)
		making.count = (making.count / MADE + 1) * MADE;
}

static void drop_unmade(u32 end)
{
	u32 fd;

	for (fd = next_unmade(0, end); fd < end; fd = next_unmade(fd + 1, end)) {
		image_call1(__NR_close, fd);
		host_syscall1(__NR_close, fd);
	}
}

/*
 * Exec must not pass on the numbers that are being made: sets close-on-exec where it is not set. If the exec fails,
 * clears it there again.
 */
void fd_exec(bool begins)
{
	static u64 changed[RING3_FDS_MAX / 64] GATE_TABLE;
	u32 end, fd;

	if (likely(!(u32)__atomic_load_n(&making.count, __ATOMIC_SEQ_CST)))
		return;
	end = unmade_end();
	for (fd = next_unmade(0, end); fd < end; fd = next_unmade(fd + 1, end)) {
		/* The bit may be left from a process that shared this memory and whose exec succeeded. */
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

/* Drops the node's descriptors and proxies whose numbers the host has closed. */
static void drop_closed(void)
{
	struct ring3_fdmap *map = gate_fdmap();
	u32 fd;

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

void fd_inherit(u64 before)
{
	u64 count = __atomic_load_n(&making.count, __ATOMIC_SEQ_CST);

	if (unlikely((u32)count || count / MADE != before / MADE))
		drop_unmade(unmade_end());
	if (unlikely(__atomic_load_n(&closes, __ATOMIC_SEQ_CST) != (u32)before))
		drop_closed();
}

/*
 * This process has unshared a descriptor table. The other process kept its counts in its own memory, so look at all
 * numbers.
 */
void fd_apart(void)
{
	drop_unmade(RING3_FDS_MAX);
	drop_closed();
}
