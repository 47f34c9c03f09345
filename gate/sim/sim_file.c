// SPDX-License-Identifier: GPL-2.0
/*
 * sim_file.c - times of the host's files, in virtual time
 *
 * Theory of operation
 * -------------------
 * Files are the host's, which stores its own time in them. So when a program has made, written or truncated a regular
 * file, the gate sets its time of modification to the node's time (sim_file_changed()).
 *
 * sim_stat() examines the result of stat(). A time between the node's start and the host's present comes from the host: the
 * time of a directory, or of a file that was written through a mapping or from outside. The program gets instead the time
 * at which it first saw that change. Times of access, of the inode's change and of birth become the time of modification,
 * if they come from the host.
 *
 * None of this costs virtual time. How often programs look at files depends on the host: a shell looks at each folder of the path
 * that it is in, and a change of files from outside must not move the programs' calls, either.
 *
 * Numbers of inodes and devices are the host's. Each process has its own record of what it saw first, and so has the program
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
#define AHEAD_S		86400		/* the clock of a file server may be ahead of the host's by this */
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

static struct timespec now(void)
{
	u64 ns = sim_day();

	return (struct timespec){ .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC };
}

static struct timespec host_now(void)
{
	struct timespec ts = { 0 };

	host_syscall2(__NR_clock_gettime, CLOCK_REALTIME_COARSE, (long)&ts);
	return ts;
}

/* A time in the host's future was set by a program. */
static bool is_of_host(s64 sec)
{
	return sec + BEFORE_S >= (s64)(gate.region->host_start_ns / NSEC) && sec <= host_now().tv_sec + AHEAD_S;
}

/*
 * Linux before 6.13 stores the time of its last tick, 1 to 10 ms ago, so two changes in one tick have the same time. This
 * function waits for the end of the tick before a change is shown: the next change then has another time, however fast the
 * machine is. No virtual time passes.
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

/* The time at which this process first saw that the file was changed at host_ns; `ts' is the present. */
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

/* A regular file of the host was written. */
static void written(s32 fd)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT_ }, now() };
	struct stat st;

	if (is_regular(fd, &st) && is_of_host(st.st_mtime))
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

/* Is the call about to make or truncate a file? A file that exists and is not truncated keeps its time. */
bool sim_file_opens(const struct gate_regs *r)
{
	u32 path;
	u64 flags = open_flags(r, &path);

	if (likely(!(flags & (O_CREAT | O_TRUNC))))
		return false;
	return (flags & O_TRUNC) ||
	       host_syscall3(__NR_faccessat, path ? (s32)r->a[0] : AT_FDCWD, r->a[path], 0) == -ENOENT;
}

/* A call of a program has succeeded: sets the time of a file that it has changed. */
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
	struct timespec ts;
	struct stat st;

	if (gate_copy_in(&st, user_ptr(user), sizeof(st)))
		return;
	ts = (struct timespec){ st.st_mtime, st.st_mtime_nsec };
	if (is_of_host(st.st_mtime))
		ts = seen_at(now(), st.st_dev, st.st_ino, st.st_mtime * NSEC + st.st_mtime_nsec);
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
	struct timespec ts;
	struct statx st;

	if (gate_copy_in(&st, user_ptr(user), sizeof(st)))
		return;
	ts = (struct timespec){ st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec };
	if (is_of_host(ts.tv_sec))
		ts = seen_at(now(), (u64)st.stx_dev_major << 32 | st.stx_dev_minor, st.stx_ino, ts.tv_sec * NSEC + ts.tv_nsec);
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
		sim_ids_of_file(r, r->a[1]);
		break;
	case __NR_newfstatat:
		stat_times(r->a[2]);
		sim_ids_of_file(r, r->a[2]);
		break;
	case __NR_statx:
		statx_times(r->a[4]);
		sim_ids_of_file(r, r->a[4]);
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
		times[i] = now();
		presents++;
	}
	own.a[2] = (u64)times;
	ret = otherwise(&own);
	/* Only the owner may set a time, but each process that may write can set the present. */
	return ret == -EPERM && presents == 2 ? otherwise(r) : ret;
}
