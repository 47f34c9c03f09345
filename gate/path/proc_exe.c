// SPDX-License-Identifier: GPL-2.0
/*
 * proc_exe.c - /proc/PID/exe names the program that a process of a node runs
 *
 * Theory of operation
 * -------------------
 * On the host all processes of a node run the gate, and that is what their /proc/PID/exe shows. A privileged
 * process could change that (PR_SET_MM_EXE_FILE), an ordinary user's process can't. So calls[] below lists each
 * call that may follow such a link, and the gate replaces the link by the program's file in these calls.
 *
 * Many paths lead to the link: through self, a thread's directory, a directory descriptor, the working directory.
 * Only its last component is fixed: exe. If a path ends in that, the gate opens the link itself, and the host says
 * what it is called: /proc/PID/exe or /proc/PID/task/TID/exe. A symbolic link with another name that leads to the
 * link is not noticed.
 *
 * The path of the program (gate_exe) has the same address in all processes that run the same gate file, so the gate
 * reads it from the memory of the other process. If that process has not looked it up yet, its program is open at
 * GATE_FD_PROGRAM.
 */
#include "policy.h"
#include "internal.h"

#include <linux/fanotify.h>
#include <linux/inotify.h>
#include <linux/mount.h>
#include <linux/openat2.h>

#define LINK_BYTES	64	/* /proc/PID/task/TID/exe, /proc/self/fd/N */
#define MEMORY_BYTES	512	/* NAME_MAX, and the folder */
#define NO_DIR		-1	/* struct call: the path has no directory descriptor */
#define NO_FLAGS	-1
#define HOW		-2	/* the flags are in struct open_how, in argument 2 */

static char gate_file[256] GATE_KEPT;	/* the path of the gate, which the host shows in place of the program's */
static u32 gate_file_len;	/* 0: not looked up yet */

static u32 gate_file_length(void)
{
	long n;

	if (likely(READ_ONCE(gate_file_len)))
		return gate_file_len;
	n = fd_link(gate_fd(GATE_FD_SELF), gate_file, sizeof(gate_file));
	if (n > 0)
		WRITE_ONCE(gate_file_len, n);
	return n > 0 ? n : 0;
}

/* The path of the file that is open at fd. */
static bool name_of(s32 fd, char name[LINK_BYTES])
{
	long n = fd_link(fd, name, LINK_BYTES);

	return n > 0 && n < LINK_BYTES - 1;
}

/* PID of /proc/PID/exe and /proc/PID/task/TID/exe, or 0. */
static s32 pid_of(const char *name)
{
	struct proc_path at;

	return proc_path(name, &at) && !strcmp(at.rest, "exe") ? at.pid : 0;
}

/*
 * The process whose exe link is at (dirfd, path), or is open at dirfd if the path is empty. 0: it is no such link,
 * or the process runs no gate.
 */
static s32 process_of(s32 dirfd, const char *path)
{
	char name[LINK_BYTES], shows[sizeof(gate_file)];
	u32 len = gate_file_length();
	s32 fd = dirfd, pid = 0;

	if (path[0])
		fd = host_syscall4(__NR_openat, dirfd, (long)path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	if (host_syscall4(__NR_readlinkat, fd, (long)"", (long)shows, sizeof(shows)) == (long)len &&
	    !memcmp(shows, gate_file, len) && name_of(fd, name))
		pid = pid_of(name);
	if (path[0])
		host_syscall1(__NR_close, fd);
	return pid;
}

static u64 program_open_in(s32 pid, char *exe)
{
	u32 base;
	long n;

	if (!process_peek(pid, &gate_fd_base, &base, sizeof(base)))
		return 0;
	n = fd_link_of(pid, base + GATE_FD_PROGRAM, exe, sizeof(gate_exe));
	return n > 0 ? n : 0;
}

/* Reads the program's path of a process that runs the same gate, PROC_EXE_BYTES; its length or 0. */
static u64 program_of(s32 pid, char *exe)
{
	u64 len;

	if (!process_peek(pid, gate_exe, exe, sizeof(gate_exe)))
		return 0;
	if (!exe[0])
		return program_open_in(pid, exe);
	len = strnlen(exe, sizeof(gate_exe));
	return exe[0] == '/' && len < sizeof(gate_exe) ? len : 0;
}

/* A path by which the host finds the program of process pid. NULL: it runs no program that the gate knows. */
static const char *file_of(s32 pid, char exe[PROC_EXE_BYTES])
{
	if (pid == host_syscall0(__NR_getpid))
		return gate_exe_file(exe, PROC_EXE_BYTES);
	return pid && program_of(pid, exe) ? exe : NULL;
}

static bool ends_in_exe(const char *path, long len)
{
	return len >= 3 && !strcmp(path + len - 3, "exe") && (len == 3 || path[len - 4] == '/');
}

const char *proc_exe(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES])
{
	if (likely(!ends_in_exe(path, strlen(path))))
		return NULL;
	if (gate_path_is_self_exe(path))
		return gate_exe_file(exe, PROC_EXE_BYTES);
	return file_of(process_of(dirfd, path), exe);
}

/* ---- calls that follow links ---- */

struct call {
	u16 nr;
	s8 dir, path;		/* argument numbers */
	s8 flags;		/* argument number, or NO_FLAGS, HOW */
	bool asked;		/* links are followed if the bit is set, else unless it is set */
	u32 bit;
};

static const struct call calls[] = {
	{ __NR_open, NO_DIR, 0, 1, false, O_NOFOLLOW },
	{ __NR_creat, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_openat, 0, 1, 2, false, O_NOFOLLOW },
	{ __NR_openat2, 0, 1, HOW, false, O_NOFOLLOW },
	{ __NR_open_tree, 0, 1, 2, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_stat, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_newfstatat, 0, 1, 3, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_statx, 0, 1, 2, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_statfs, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_access, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_faccessat, 0, 1, NO_FLAGS, false, 0 },
	{ __NR_faccessat2, 0, 1, 3, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_chmod, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_fchmodat, 0, 1, NO_FLAGS, false, 0 },
	{ __NR_fchmodat2, 0, 1, 3, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_chown, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_fchownat, 0, 1, 4, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_utime, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_utimes, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_futimesat, 0, 1, NO_FLAGS, false, 0 },
	{ __NR_utimensat, 0, 1, 3, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_truncate, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_getxattr, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_setxattr, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_listxattr, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_removexattr, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_linkat, 0, 1, 4, true, AT_SYMLINK_FOLLOW },
	{ __NR_name_to_handle_at, 0, 1, 4, true, AT_SYMLINK_FOLLOW },
	{ __NR_mount, NO_DIR, 0, NO_FLAGS, false, 0 },
	{ __NR_move_mount, 0, 1, 4, true, MOVE_MOUNT_F_SYMLINKS },
	{ __NR_mount_setattr, 0, 1, 2, false, AT_SYMLINK_NOFOLLOW },
	{ __NR_fspick, 0, 1, 2, false, FSPICK_SYMLINK_NOFOLLOW },
	{ __NR_inotify_add_watch, NO_DIR, 1, 2, false, IN_DONT_FOLLOW },
	{ __NR_fanotify_mark, 3, 4, 1, false, FAN_MARK_DONT_FOLLOW },
};

static const struct call *call_of(u64 nr)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return &calls[i];
	return NULL;
}

/* openat2() may forbid such links (resolve flags): then the open of the gate fails as the program's would. */
static bool how_follows(const struct gate_regs *r, u32 bit)
{
	struct open_how how;

	return r->a[3] >= sizeof(how) && !gate_copy_in(&how, user_ptr(r->a[2]), sizeof(how)) && !(how.flags & bit) &&
	       !(how.resolve & ~(u64)RESOLVE_CACHED);
}

static bool follows(const struct call *c, const struct gate_regs *r)
{
	if (c->flags == NO_FLAGS)
		return true;
	if (c->flags == HOW)
		return how_follows(r, c->bit);
	return !!(r->a[c->flags] & c->bit) == c->asked;
}

/* A separate frame: it is large, and few calls get here. */
static bool __attribute__((noinline)) follow(const struct gate_regs *r, const struct call *c, const char *path, long *ret)
{
	struct gate_regs host = *r;
	char exe[PROC_EXE_BYTES];
	const char *file = proc_exe(c->dir == NO_DIR ? AT_FDCWD : (s32)r->a[c->dir], path, exe);

	if (!file)
		return false;
	if (c->dir != NO_DIR)
		host.a[c->dir] = AT_FDCWD;
	host.a[c->path] = (u64)file;
	*ret = gate_host_regs(&host);
	return true;
}

/*
 * A path in a sandbox's /dev/shm. What the host refuses there, or has not got, is in the sandbox's own folder: a path that
 * the sandbox was given by --rw goes to the host.
 */
static bool __attribute__((noinline)) memory_call(const struct gate_regs *r, u64 user_path, const char *path, long *ret)
{
	struct gate_regs host = *r;
	char name[MEMORY_BYTES];
	u32 i;

	if (!memory_name(path, name, sizeof(name)))
		return false;
	*ret = gate_host_regs(r);
	if (*ret != -EACCES && *ret != -ENOENT)
		return true;
	for (i = 0; i < 2; i++)
		if (r->a[i] == user_path)
			host.a[i] = (u64)name;
	*ret = gate_host_regs(&host);
	return true;
}

bool proc_exe_call(const struct gate_regs *r, u64 user_path, long *ret)
{
	char path[PATH_BUF];
	const struct call *c;
	long len;

	len = gate_strncpy_in(path, user_ptr(user_path), sizeof(path));
	if (likely(len < 0))
		return false;
	if (unlikely(is_memory(path)))
		return memory_call(r, user_path, path, ret);
	if (likely(!ends_in_exe(path, len)))
		return false;
	c = call_of(r->nr);
	return c && follows(c, r) && follow(r, c, path, ret);
}

/* Calls that go to the gate for this reason only. */
long do_proc_exe(struct gate_regs *r)
{
	const struct call *c = call_of(r->nr);
	long ret;

	return proc_exe_call(r, r->a[c->path], &ret) ? ret : gate_host_regs(r);
}

/* link(), linkat() and rename(): each path may be in a sandbox's /dev/shm. */
static long __attribute__((noinline)) memory_paths(const struct gate_regs *r, long ret)
{
	bool is_at = r->nr != __NR_link && r->nr != __NR_rename, found = false;
	char path[MEMORY_BYTES], name[2][MEMORY_BYTES];
	u32 i, at[2] = { is_at, is_at ? 3 : 1 };
	struct gate_regs host = *r;

	for (i = 0; i < 2; i++) {
		if (gate_strncpy_in(path, user_ptr(r->a[at[i]]), sizeof(path)) < 0 || !is_memory(path) ||
		    !memory_name(path, name[i], sizeof(name[i])))
			continue;
		host.a[at[i]] = (u64)name[i];
		found = true;
	}
	return found ? gate_host_regs(&host) : ret;
}

long do_two_paths(struct gate_regs *r)
{
	long ret = r->nr == __NR_linkat ? do_proc_exe(r) : gate_host_regs(r);

	return ret == -EACCES || ret == -ENOENT ? memory_paths(r, ret) : ret;
}

/* ---- readlink() ---- */

long proc_exe_give(u64 user, u64 size, const char *exe)
{
	u64 len = strlen(exe);

	if (len > size)
		len = size;
	return gate_copy_out(user_ptr(user), exe, len) ? -EFAULT : (long)len;
}

static long __attribute__((noinline)) link_text(s32 dirfd, const char *path, u64 user, u64 size, long ret)
{
	s32 pid = process_of(dirfd, path);
	char exe[PROC_EXE_BYTES];

	if (pid == host_syscall0(__NR_getpid))
		return proc_exe_give(user, size, gate_exe_path());
	return pid && program_of(pid, exe) ? proc_exe_give(user, size, exe) : ret;
}

/* The host's readlink has written ret bytes to user: replaces them if they name the gate. */
long proc_exe_link(s32 dirfd, u64 user_path, u64 user, u64 size, long ret)
{
	char path[LINK_BYTES], text[sizeof(gate_file)];

	if (likely(ret <= 0 || ret > (long)gate_file_length() || (ret != (long)gate_file_len && ret != (long)size)))
		return ret;
	if (gate_copy_in(text, user_ptr(user), ret) || memcmp(text, gate_file, ret) ||
	    gate_strncpy_in(path, user_ptr(user_path), sizeof(path)) < 0)
		return ret;
	return link_text(dirfd, path, user, size, ret);
}
