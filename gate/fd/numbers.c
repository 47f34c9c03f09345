// SPDX-License-Identifier: GPL-2.0
/*
 * numbers.c - numbers of descriptors that change hands while another thread forks or executes a program
 */
#include "fd/numbers.h"

#include <linux/stat.h>

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

void fd_replacing(int more)
{
	__atomic_fetch_add(&replacing, more, __ATOMIC_SEQ_CST);
}

void fd_closing(void)
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

static void drop_unmade(u32 end)
{
	u32 fd;

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

/* What the host has closed. */
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

/* After a process has taken its descriptor table apart from another's: the other counts in memory of its own. */
void fd_apart(void)
{
	drop_unmade(RING3_FDS_MAX);
	drop_closed();
}
