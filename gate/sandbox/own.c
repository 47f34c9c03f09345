// SPDX-License-Identifier: GPL-2.0
/*
 * own.c - files of the sandbox's processes in /proc
 *
 * In a sandbox, programs can't see /proc: Landlock has no rule for directories that do not exist yet. There the
 * warden opens the file, if its process is one of the sandbox's. The gate asks it by a call with the number of epoll_wait_old(),
 * which is unused on x86-64 and passes containers' filters (ring3/sandbox/src/notify.rs). Elsewhere the host answers ENOSYS.
 */
#include "policy.h"

/* The order of OWN_FILES in ring3/sandbox/src/list.rs. */
static const char *const files[OWN_MEMORY] = {
	[OWN_MAPS] = "maps",
	[OWN_STATUS] = "status",
	"stat", "statm", "cmdline", "comm", "environ", "auxv", "limits", "cgroup", "smaps", "smaps_rollup", "io", "oom_score",
	"oom_score_adj", "fd", "fdinfo", "task", "uid_map", "gid_map",
};

/* Of the machine: the order of MACHINE_FILES there. */
static const char *const machine[] = {
	"cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "uptime", "version", "sys/fs/file-max", "sys/fs/nr_open",
	"sys/fs/pipe-max-size", "sys/kernel/cap_last_cap", "sys/kernel/ngroups_max", "sys/kernel/osrelease", "sys/kernel/ostype",
	"sys/kernel/pid_max", "sys/kernel/random/uuid", "sys/kernel/threads-max", "sys/vm/max_map_count", "sys/vm/overcommit_memory",
};

/*
 * Until the warden has a question, a signal whose handler has no SA_RESTART ends the call, which has done nothing. On Linux
 * none of these calls waits, so that programs expect no EINTR. connect() they do.
 */
static bool is_asked(u64 nr)
{
	switch (nr) {
	CASES_OF_WARDEN
		return nr != __NR_connect;
	}
	return false;
}

long own_interrupted(u64 nr)
{
	return is_asked(nr) && own_confined() ? -ERESTARTNOINTR : -EINTR;
}

long own_ask(u32 file, s32 tid, s32 pid)
{
	long ret;

	do
		ret = host_syscall3(__NR_epoll_wait_old, file, tid, pid);
	while (ret == -EINTR);
	return ret;
}

/*
 * Outside of a sandbox the host has no such call, or a filter refuses it. Any other error is the warden's, and may be
 * another the next time: it has no descriptor or no memory.
 */
bool own_is_unsure(long ret)
{
	return ret < 0 && ret != -ENOSYS && ret != -EPERM && ret != -EACCES;
}

/* Is this process in a sandbox? Then it was, and will be. */
bool own_confined(void)
{
	static u32 known;	/* 1: no; 2: yes */
	u32 is = __atomic_load_n(&known, __ATOMIC_RELAXED);
	long fd;

	if (unlikely(!is)) {
		fd = own_ask(OWN_STATUS, 0, 0);
		if (fd >= 0)
			host_syscall1(__NR_close, fd);
		if (own_is_unsure(fd))
			return true;
		is = fd >= 0 || fd == -EACCES ? 2 : 1;
		__atomic_store_n(&known, is, __ATOMIC_RELAXED);
	}
	return is == 2;
}

long own_open(enum own_file file)
{
	char path[32];
	long fd, asked;

	gate_format(path, sizeof(path), "/proc/self/%s", files[file]);
	fd = host_syscall3(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC);
	if (fd != -EACCES)
		return fd;
	asked = own_ask(file, 0, 0);
	return asked == -ENOSYS ? fd : asked;
}

/* Is it this file, or with a slash behind it this folder? */
static bool is_named(const char *rest, const char *file)
{
	size_t len = strlen(file);

	return !strncmp(rest, file, len) && (!rest[len] || !strcmp(rest + len, "/"));
}

/* The index of the file that a path names, the thread's number or 0, and another process's or 0; or -1. */
static s32 own_file(const char *path, s32 *tid, s32 *pid)
{
	struct proc_path at;
	u32 i;

	*tid = *pid = 0;
	for (i = 0; i < ARRAY_SIZE(machine) && !strncmp(path, "/proc/", 6); i++)
		if (!strcmp(path + 6, machine[i]))
			return OWN_MACHINE + i;
	if (!proc_path(strcmp(path, "/dev/fd") ? path : "/proc/self/fd", &at))
		return -1;
	*tid = at.tid;
	*pid = at.pid == host_syscall0(__NR_getpid) ? 0 : at.pid;
	for (i = 0; i < ARRAY_SIZE(files); i++)
		if (is_named(at.rest, files[i]))
			return i;
	return -1;
}

/* The host has refused to open this path to read: ret, or a descriptor that the warden gives, which exec closes. */
long own_given(const char *path, long ret)
{
	s32 file, tid, pid;
	long fd;

	if (likely(ret != -EACCES))
		return ret;
	file = own_file(path, &tid, &pid);
	if (file < 0)
		return ret;
	fd = own_ask(file, tid, pid);
	return fd == -ENOSYS ? ret : fd;
}

/* The same for a call of the program's. */
long own_opened(u64 user_path, u64 flags, long ret)
{
	char path[64];
	long fd;

	if (likely(ret != -EACCES) || (flags & (O_ACCMODE | O_CREAT | O_TRUNC)) != O_RDONLY)
		return ret;
	if (gate_strncpy_in(path, user_ptr(user_path), sizeof(path)) <= 0)
		return ret;
	fd = own_given(path, ret);
	if (fd >= 0 && !(flags & O_CLOEXEC))
		host_syscall3(__NR_fcntl, fd, F_SETFD, 0);
	return fd;
}

#define LINE_MAX	512		/* of a mapping, without the file name */

bool own_maps_open(struct own_maps *m)
{
	m->fd = own_open(OWN_MAPS);
	m->len = m->taken = 0;
	return m->fd >= 0;
}

/* The next line; bytes beyond LINE_MAX are dropped. NULL: there is no more. */
static char *next_line(struct own_maps *m)
{
	char *eol;
	long n;

	memmove(m->text, m->text + m->taken, m->len - m->taken);
	m->len -= m->taken;
	for (;;) {
		m->text[m->len] = 0;
		eol = strchr(m->text, '\n');
		if (eol) {
			*eol = 0;
			m->taken = eol + 1 - m->text;
			return m->text;
		}
		if (m->len == sizeof(m->text) - 1)
			m->len = LINE_MAX;
		n = host_syscall3(__NR_read, m->fd, (long)m->text + m->len, sizeof(m->text) - 1 - m->len);
		if (n <= 0)
			return NULL;
		m->len += n;
	}
}

const char *own_maps_next(struct own_maps *m, u64 *start, u64 *end)
{
	const char *p = next_line(m);

	if (!p) {
		host_syscall1(__NR_close, m->fd);
		return NULL;
	}
	*start = gate_strtou(p, 16, &p);
	*end = *p == '-' ? gate_strtou(p + 1, 16, &p) : 0;
	return p;
}
