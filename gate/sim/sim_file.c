// SPDX-License-Identifier: GPL-2.0
/*
 * sim_file.c - times of the host's files, in virtual time
 *
 * Theory of operation
 * -------------------
 * Files are the host's, which notes its own time in them. So the gate gives a regular file the node's time as its time of
 * modification when a program has made it, written to it or cut it (sim_file_changed()).
 *
 * What stat() says is looked at (sim_stat()). A time between the node's start and the host's present is the host's: of a directory, of a file
 * that was written through a mapping, or by somebody outside. The program gets the time at which it has seen that change
 * first. The times of access, of the last change of the inode and of birth become the time of modification, where they
 * are the host's.
 *
 * To ask for the time costs virtual time. So each of these calls asks, whatever the host's times are: what else has changed
 * files of the host, and when, must not move the programs' calls.
 *
 * Numbers of inodes and of devices are the host's. What a process has seen first, another one sees anew, and so does the program
 * that it executes.
 */
#include "internal.h"
#include "policy.h"
#include <linux/fcntl.h>
#include <linux/stat.h>
#include <linux/time_types.h>

#define NSEC		1000000000ull
#define BEFORE_S	10		/* `ring3 sim' makes the data folder so long before the node, at most */
#define TICK_MS		10		/* the longest one, with HZ=100 */
#define AHEAD_S		86400		/* by so much the clock of a file server may be ahead of the host's */
#define SEEN		256		/* files whose last change a process remembers; the oldest gives way */
#define UTIME_NOW_	((1l << 30) - 1)
#define UTIME_OMIT_	((1l << 30) - 2)

struct change {
	u64 dev, ino;
	u64 host_ns;
	struct timespec seen;
};

static struct gate_mutex seen_lock;
static struct change seen[SEEN] GATE_TABLE;
static u32 seen_next;

/* False: the node has failed. */
static bool now(struct timespec *now)
{
	struct __kernel_timespec ts;

	if (image_call2(__NR_clock_gettime, CLOCK_REALTIME, &ts))
		return false;
	*now = (struct timespec){ .tv_sec = ts.tv_sec, .tv_nsec = ts.tv_nsec };
	return true;
}

static struct timespec host_now(void)
{
	struct timespec ts = { 0 };

	host_syscall2(__NR_clock_gettime, CLOCK_REALTIME_COARSE, (long)&ts);
	return ts;
}

/* One that is still to come for the host, too, was asked for by a program. */
static bool is_of_host(s64 sec)
{
	return sec + BEFORE_S >= (s64)(gate.region->host_start_ns / NSEC) && sec <= host_now().tv_sec + AHEAD_S;
}

/*
 * Linux before 6.13 notes the time of its last tick, 1 to 10 ms ago, and two changes in one tick have one time. So a change is not told
 * before its tick is over: the next one has another time, however fast the machine is. No virtual time passes.
 */
static void tick_passes(u64 host_ns)
{
	const struct timespec ms = { .tv_nsec = 1000000 };
	struct timespec ts;
	u32 i;

	for (i = 0; i < TICK_MS; i++) {
		ts = host_now();
		if ((u64)ts.tv_sec * NSEC + ts.tv_nsec > host_ns)
			return;
		host_syscall2(__NR_nanosleep, (long)&ms, 0);
	}
}

/* When this process, for which it is `ts' now, has seen first that the file was changed at host_ns. */
static struct timespec seen_at(struct timespec ts, u64 dev, u64 ino, u64 host_ns)
{
	u32 i;

	gate_lock(&seen_lock);
	for (i = 0; i < SEEN; i++)
		if (seen[i].ino == ino && seen[i].dev == dev)
			break;
	if (i < SEEN && seen[i].host_ns == host_ns) {
		ts = seen[i].seen;
	} else {
		tick_passes(host_ns);
		seen[i < SEEN ? i : seen_next++ % SEEN] = (struct change){ dev, ino, host_ns, ts };
	}
	gate_unlock(&seen_lock);
	return ts;
}

static bool is_regular(s32 fd, struct stat *st)
{
	return !fd_is_node(fd) && !host_syscall2(__NR_fstat, fd, (long)st) && (st->st_mode & S_IFMT) == S_IFREG;
}

/* A regular file of the host's was written to, by its descriptor. While the node tells the time, others may have the turn. */
static void written(s32 fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT_ } };
	struct stat st;

	if (is_regular(fd, &st) && now(&times[1]) && is_regular(fd, &st) && is_of_host(st.st_mtime))
		host_syscall4(__NR_utimensat, fd, 0, (long)times, 0);
}

/* The flags of a call that opens a file by the path of its argument *path. */
static u64 open_flags(const struct gate_regs *r, u32 *path)
{
	u64 flags;

	*path = 1;
	switch (r->nr) {
	case __NR_creat:
		*path = 0;
		return O_CREAT | O_TRUNC;
	case __NR_open:
		*path = 0;
		return r->a[1];
	case __NR_openat:
		return r->a[2];
	case __NR_openat2:
		return gate_copy_in(&flags, user_ptr(r->a[2]), sizeof(flags)) ? 0 : flags;
	}
	return 0;
}

/* Is the call about to make or to cut a file? A file that is there, and stays as it is, keeps its time. */
bool sim_file_opens(const struct gate_regs *r)
{
	u32 path;
	u64 flags = open_flags(r, &path);

	if (likely(!(flags & (O_CREAT | O_TRUNC))))
		return false;
	return (flags & O_TRUNC) ||
	       host_syscall3(__NR_faccessat, path ? (s32)r->a[0] : AT_FDCWD, r->a[path], 0) == -ENOENT;
}

/* A call of a program has gone well: what it means for a file's time. */
void sim_file_changed(const struct gate_regs *r, long ret, bool opens)
{
	if (unlikely(opens)) {
		written(ret);
		return;
	}
	switch (r->nr) {
	case __NR_write:
	case __NR_pwrite64:
	case __NR_writev:
	case __NR_pwritev:
	case __NR_pwritev2:
	case __NR_ftruncate:
	case __NR_fallocate:
	case __NR_sendfile:
		written(r->a[0]);
		break;
	case __NR_copy_file_range:
	case __NR_splice:
		written(r->a[2]);
		break;
	}
}

static void stat_times(u64 user)
{
	struct timespec ts, seen;
	struct stat st;

	if (!now(&seen) || gate_copy_in(&st, user_ptr(user), sizeof(st)))
		return;
	ts = (struct timespec){ st.st_mtime, st.st_mtime_nsec };
	if (is_of_host(st.st_mtime))
		ts = seen_at(seen, st.st_dev, st.st_ino, st.st_mtime * NSEC + st.st_mtime_nsec);
	else if (!is_of_host(st.st_ctime) && !is_of_host(st.st_atime))
		return;
	st.st_mtime = ts.tv_sec;
	st.st_mtime_nsec = ts.tv_nsec;
	if (is_of_host(st.st_ctime)) {
		st.st_ctime = ts.tv_sec;
		st.st_ctime_nsec = ts.tv_nsec;
	}
	if (is_of_host(st.st_atime)) {
		st.st_atime = ts.tv_sec;
		st.st_atime_nsec = ts.tv_nsec;
	}
	gate_copy_out(user_ptr(user), &st, sizeof(st));
}

static void statx_time(struct statx_timestamp *at, const struct timespec *ts)
{
	if (!is_of_host(at->tv_sec))
		return;
	at->tv_sec = ts->tv_sec;
	at->tv_nsec = ts->tv_nsec;
}

static void statx_times(u64 user)
{
	struct timespec ts, seen;
	struct statx st;

	if (!now(&seen) || gate_copy_in(&st, user_ptr(user), sizeof(st)))
		return;
	ts = (struct timespec){ st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec };
	if (is_of_host(ts.tv_sec))
		ts = seen_at(seen, (u64)st.stx_dev_major << 32 | st.stx_dev_minor, st.stx_ino, ts.tv_sec * NSEC + ts.tv_nsec);
	statx_time(&st.stx_mtime, &ts);
	statx_time(&st.stx_ctime, &ts);
	statx_time(&st.stx_atime, &ts);
	statx_time(&st.stx_btime, &ts);
	gate_copy_out(user_ptr(user), &st, sizeof(st));
}

/* stat() and its relatives. */
long sim_stat(struct gate_regs *r, gate_handler otherwise)
{
	long ret = otherwise(r);

	if (ret)
		return ret;
	switch (r->nr) {
	case __NR_stat:
	case __NR_lstat:
	case __NR_fstat:
		stat_times(r->a[1]);
		break;
	case __NR_newfstatat:
		stat_times(r->a[2]);
		break;
	case __NR_statx:
		statx_times(r->a[4]);
		break;
	}
	return 0;
}

/* utimensat(): the present is the node's. */
long sim_utimensat(struct gate_regs *r, gate_handler otherwise)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW_ }, { .tv_nsec = UTIME_NOW_ } };
	struct gate_regs own = *r;
	u32 i, presents = 0;
	long ret;

	if (r->a[2] && gate_copy_in(times, user_ptr(r->a[2]), sizeof(times)))
		return -EFAULT;
	for (i = 0; i < 2; i++) {
		if (times[i].tv_nsec != UTIME_NOW_)
			continue;
		if (!now(&times[i]))
			return -EIO;
		presents++;
	}
	own.a[2] = (u64)times;
	ret = otherwise(&own);
	/* A time takes the owner; to say that it was changed now, whoever may write. */
	return ret == -EPERM && presents == 2 ? otherwise(r) : ret;
}
