// SPDX-License-Identifier: GPL-2.0
/*
 * fds.c - the descriptors of the gate
 *
 * GATE_RESERVED_FDS consecutive numbers. If the hard limit has room, they are just above the program's soft limit,
 * so that the program can't reach them. Otherwise they are at the top of the first 1024, where they do not enlarge
 * the descriptor table that every fork copies. They stay open over exec.
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

void fds_start(u32 inherited_base)
{
	struct rlimit64 lim;

	if (inherited_base) {
		gate_fd_base = inherited_base;
		return;
	}
	if (host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim))
		gate_die(125, "cannot read the limit of open files");
	if (lim.rlim_cur <= 1024 && lim.rlim_max >= lim.rlim_cur + GATE_RESERVED_FDS)
		gate_fd_base = lim.rlim_cur;
	else if (lim.rlim_cur >= 2 * ROW_BELOW)
		gate_fd_base = (lim.rlim_cur < 1024 ? lim.rlim_cur : 1024) - ROW_BELOW;
	else
		gate_die(125, "the limit of open files is %lu: raise it with ulimit -n 1024",
			 (unsigned long)lim.rlim_cur);
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
