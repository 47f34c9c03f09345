// SPDX-License-Identifier: GPL-2.0
/*
 * state.c - processes of the node, and what the host's /proc says about processes and descriptors
 */
#include "internal.h"

long read_proc(const char *path, char *text, size_t size)
{
	long fd = host_syscall4(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);

	return read_and_close(own_given(path, fd), text, size);
}

long read_and_close(long fd, char *text, size_t size)
{
	long n;

	text[0] = 0;
	if (fd < 0)
		return fd;
	n = host_syscall3(__NR_read, fd, (long)text, size - 1);
	host_syscall1(__NR_close, fd);
	text[n < 0 ? 0 : n] = 0;
	return n;
}

long proc_link(const char *path, char *text, size_t size)
{
	long n = host_syscall4(__NR_readlinkat, AT_FDCWD, (long)path, (long)text, size - 1);

	text[n < 0 ? 0 : n] = 0;
	return n;
}

long fd_link(int fd, char *text, size_t size)
{
	char path[32];

	gate_format(path, sizeof(path), "/proc/self/fd/%d", fd);
	return proc_link(path, text, size);
}

long fd_link_of(s32 pid, u32 fd, char *text, size_t size)
{
	char path[48];

	gate_format(path, sizeof(path), "/proc/%d/fd/%u", pid, fd);
	return proc_link(path, text, size);
}

/* Removes `name' and a slash from the beginning. */
static bool take_name(const char **p, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(*p, name, len) || (*p)[len] != '/')
		return false;
	*p += len + 1;
	return true;
}

/* The same for a pid or tid; 0: there is none. */
static s32 take_number(const char **p)
{
	const char *end;
	u64 n = **p >= '1' && **p <= '9' ? gate_strtou(*p, 10, &end) : 0;

	if (!n || n >> 31 || *end != '/')
		return 0;
	*p = end + 1;
	return n;
}

bool proc_path(const char *path, struct proc_path *at)
{
	*at = (struct proc_path){ 0 };
	if (!take_name(&path, "/proc"))
		return false;
	if (take_name(&path, "thread-self"))
		at->tid = host_syscall0(__NR_gettid);
	if (at->tid || take_name(&path, "self"))
		at->pid = host_syscall0(__NR_getpid);
	else
		at->pid = take_number(&path);
	if (!at->tid && take_name(&path, "task")) {
		at->tid = take_number(&path);
		if (!at->tid)
			return false;
	}
	at->rest = path;
	return at->pid;
}

const char *proc_line(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, key, n))
			return text + n;
	}
	return NULL;
}

/*
 * The process of the node that a pidfd is of. In a sandbox /proc does not tell: the pidfds of one process are one file
 * (Linux 6.9 or later; a sandbox needs 6.12).
 */
static s32 pid_by_file(int fd)
{
	struct stat asked, own;
	struct ring3_proc *proc;
	s32 pid = 0;
	u32 i = 0;
	long own_fd;

	if (host_syscall2(__NR_fstat, fd, (long)&asked))
		return 0;
	while (!pid && (proc = proc_next(&i))) {
		own_fd = host_syscall2(__NR_pidfd_open, proc->pid, 0);
		if (own_fd < 0)
			continue;
		if (!host_syscall2(__NR_fstat, own_fd, (long)&own) && own.st_dev == asked.st_dev && own.st_ino == asked.st_ino)
			pid = proc->pid;
		host_syscall1(__NR_close, own_fd);
	}
	return pid;
}

s32 pidfd_pid(int fd)
{
	char path[40], text[512];
	const char *pid, *end;
	long n;

	gate_format(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	n = read_proc(path, text, sizeof(text));
	if (unlikely(n == -EACCES))
		return pid_by_file(fd);
	if (n < 0)
		return 0;
	pid = proc_line(text, "Pid:\t");
	return pid && *pid != '-' ? (s32)gate_strtou(pid, 10, &end) : 0;
}

bool process_peek(s32 pid, const void *at, void *to, size_t n)
{
	struct iovec here = { .iov_base = to, .iov_len = n };
	struct iovec there = { .iov_base = (void *)at, .iov_len = n };

	return host_syscall6(__NR_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) == (long)n;
}

struct ring3_proc *proc_next(u32 *i)
{
	struct ring3_proc *proc;

	while (gate.region && *i < READ_ONCE(gate.region->procs_used)) {
		proc = &gate.region->procs[(*i)++];
		if (READ_ONCE(proc->pid) > 0 && READ_ONCE(proc->state))
			return proc;
	}
	return NULL;
}

struct ring3_proc *proc_find(s32 pid)
{
	struct ring3_proc *proc;
	u32 i = 0;

	while ((proc = proc_next(&i)) && proc->pid != pid)
		;
	return proc;
}

/*
 * The letter of a process's state; 0: it has ended; '?': the host does not tell (in a sandbox), so that the caller
 * waits as long as a stop may take.
 */
char process_state(s32 pid)
{
	char path[64], text[128], *p;
	long n;

	gate_format(path, sizeof(path), "/proc/%d/stat", pid);
	n = read_proc(path, text, sizeof(text));
	if (n < 0)
		return n == -ENOENT || n == -ESRCH ? 0 : '?';
	for (p = text + n; p > text; p--)
		if (p[-1] == ')' && p + 1 < text + n)
			return p[1];
	return 0;
}
