// SPDX-License-Identifier: GPL-2.0
/*
 * fds.c - the descriptors of the gate
 *
 * GATE_RESERVED_FDS consecutive numbers. If the hard limit has room, they are just above the program's soft limit,
 * so that the program can't reach them. Otherwise they are at the top of the first 1024, where they do not enlarge
 * the descriptor table that every fork copies. They stay open over exec. A number that the program has inherited is
 * its own, above the soft limit too.
 */
#include "internal.h"
#include "policy.h"

/* Not at the very top of 1024: programs like to dup2() to 1000. */
#define ROW_BELOW	63

u32 gate_fd_base;

/*
 * Held from fds_raise() to fds_back(): the limit is shared by all threads. Another thread would find the raised
 * one, and restore that later.
 */
struct gate_mutex gate_raised_lock;

/* A start of a program has so many of its own open at most: the program's file, a socket, the region, 16 ports. */
#define START_FDS	24
/* From this soft limit on, a start that finds too few numbers free is told so by the host: counting takes 0.1 us each. */
#define SCARCE		256

static bool scarce;
static struct rlimit64 program_limit;

static bool is_open(u64 fd)
{
	return host_syscall3(__NR_fcntl, fd, F_GETFD, 0) >= 0;
}

/* The first row from `from` to `end`, with START_FDS free numbers before it; 0: there is none. */
static u32 row_above(u64 from, u64 end)
{
	u64 fd = from < SCARCE ? 0 : from;
	u32 left = from < SCARCE ? START_FDS : 0, row = 0;

	for (; fd < end && row < GATE_RESERVED_FDS; fd++) {
		if (is_open(fd))
			row = 0;
		else if (fd >= from && !left)
			row++;
		else if (left)
			left--;
	}
	return row == GATE_RESERVED_FDS ? fd - row : 0;
}

/* The last row that begins at `from` or below. */
static u32 row_below(u32 from)
{
	u32 fd, row = 0;

	for (fd = from + GATE_RESERVED_FDS - 1; fd && row < GATE_RESERVED_FDS; fd--)
		row = is_open(fd) ? 0 : row + 1;
	return row == GATE_RESERVED_FDS ? fd + 1 : 0;
}

/* The start's descriptors are open, at the row's numbers: the program's limit holds again. */
void fds_started(void)
{
	if (scarce)
		fds_back(program_limit);
	scarce = false;
}

void fds_start(u32 inherited_base)
{
	struct rlimit64 lim;

	if (inherited_base) {
		gate_fd_base = inherited_base;
		return;
	}
	if (host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim))
		gate_die(125, "cannot read the limit of open files");
	if (lim.rlim_cur <= 1024)
		gate_fd_base = row_above(lim.rlim_cur, lim.rlim_max < RING3_FDS_MAX ? lim.rlim_max : RING3_FDS_MAX);
	scarce = gate_fd_base && lim.rlim_cur < SCARCE;
	if (!gate_fd_base && lim.rlim_cur >= 2 * ROW_BELOW)
		gate_fd_base = row_below((lim.rlim_cur < 1024 ? lim.rlim_cur : 1024) - ROW_BELOW);
	if (!gate_fd_base)
		gate_die(125, "the limit of open files is %lu, and %d numbers in a row are not free: raise it with ulimit -n 1024",
			 (unsigned long)lim.rlim_cur, GATE_RESERVED_FDS);
	if (!scarce)
		return;
	program_limit = fds_raise(gate_fd_base + GATE_RESERVED_FDS);
	if (program_limit.rlim_cur > program_limit.rlim_max)	/* refused */
		fds_started();
}

struct rlimit64 fds_raise(u64 to)
{
	struct rlimit64 lim = { 0 }, wide;

	gate_lock(&gate_raised_lock);
	host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim);
	if (!to)
		to = lim.rlim_max;
	wide = (struct rlimit64){ to, lim.rlim_max < to ? to : lim.rlim_max };
	if (lim.rlim_cur >= to || host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)&wide, 0))
		return (struct rlimit64){ .rlim_cur = 1 };	/* the row is above the hard limit: there is nothing to restore */
	return lim;
}

void fds_back(struct rlimit64 lim)
{
	if (lim.rlim_cur <= lim.rlim_max)
		host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, (long)&lim, 0);
	gate_unlock(&gate_raised_lock);
}

long gate_fd_keep(int fd, int slot)
{
	long ret = host_syscall3(__NR_dup3, fd, gate_fd(slot), 0);
	struct rlimit64 lim;

	if (ret == -EBADF && host_syscall3(__NR_fcntl, fd, F_GETFD, 0) >= 0) {
		/* The host allocates a number above the soft limit only while the limit is raised. */
		lim = fds_raise(gate_fd_base + GATE_RESERVED_FDS);
		ret = host_syscall3(__NR_dup3, fd, gate_fd(slot), 0);
		fds_back(lim);
		if (ret == -EBADF)
			return -EMFILE;
	}
	if (!HOST_IS_ERR(ret))
		host_syscall1(__NR_close, fd);
	return ret;
}

/*
 * Opens a file for exec. On Linux exec needs no descriptor, so the program's limit must not apply. A socket or a
 * device without a driver can't be opened; for exec they are files that are not executable.
 */
long gate_open_for_exec(int dir, const char *path, int flags)
{
	struct rlimit64 lim;
	long fd = host_syscall4(__NR_openat, dir, (long)path, flags, 0);

	if (likely(fd != -EMFILE))
		return fd == -ENXIO || fd == -ENODEV ? -EACCES : fd;
	lim = fds_raise(0);
	fd = host_syscall4(__NR_openat, dir, (long)path, flags, 0);
	fds_back(lim);
	return fd;
}

/* The slot is not used any more. Its number must not become the program's (see fd_start()). */
void fd_slot_idle(int slot)
{
	long fd = host_syscall3(__NR_fcntl, gate_fd(FD_PLACEHOLDER), F_DUPFD, 0);

	if (fd < 0 || gate_fd_keep(fd, slot) < 0)
		host_syscall1(__NR_close, gate_fd(slot));	/* there is no placeholder to fill it with */
}
