// SPDX-License-Identifier: GPL-2.0
/*
 * proc_exe.c - which program another process of a node runs
 *
 * For the host all of them run the gate, which is what /proc/PID/exe says. A debugger that
 * attaches (gdb -p, ltrace) takes its symbols from there. What a gate runs stands at
 * the same address in all processes of the same gate: ours is where to look. Where it has not
 * asked that itself yet, its program is open at GATE_FD_PROGRAM.
 */
#include "policy.h"
#include "internal.h"

_Static_assert(sizeof(gate_exe) == PROC_EXE_BYTES, "policy.h");

static char gate_file[256];	/* what the host shows in place of a program */
static u32 gate_file_len;	/* 0: not looked up yet */

static u32 gate_file_length(void)
{
	char link[40];
	long n;

	if (likely(READ_ONCE(gate_file_len)))
		return gate_file_len;
	gate_format(link, sizeof(link), "/proc/self/fd/%d", gate_fd(GATE_FD_SELF));
	n = host_syscall4(__NR_readlinkat, AT_FDCWD, (long)link, (long)gate_file,
			  sizeof(gate_file));
	if (n > 0)
		WRITE_ONCE(gate_file_len, n);
	return n > 0 ? n : 0;
}

/* N of /proc/N/exe, or 0. */
static s32 pid_of(const char *path)
{
	const char *end;
	u64 pid;

	if (strncmp(path, "/proc/", 6) || path[6] < '1' || path[6] > '9')
		return 0;
	pid = gate_strtou(path + 6, 10, &end);
	return !strcmp(end, "/exe") && pid < 0x80000000u ? pid : 0;
}

static u64 program_open_in(s32 pid, char *exe)
{
	u32 base;
	struct iovec here = { .iov_base = &base, .iov_len = sizeof(base) };
	struct iovec there = { .iov_base = &gate_fd_base, .iov_len = sizeof(base) };
	char link[48];
	long n;

	if (host_syscall6(__NR_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) !=
	    sizeof(base))
		return 0;
	gate_format(link, sizeof(link), "/proc/%d/fd/%u", pid, base + GATE_FD_PROGRAM);
	n = host_syscall4(__NR_readlinkat, AT_FDCWD, (long)link, (long)exe, sizeof(gate_exe) - 1);
	if (n <= 0)
		return 0;
	exe[n] = 0;
	return n;
}

/* The program of a process that runs our gate, of PROC_EXE_BYTES; its length or 0. */
static u64 program_of(s32 pid, char *exe)
{
	struct iovec here = { .iov_base = exe, .iov_len = sizeof(gate_exe) };
	struct iovec there = { .iov_base = gate_exe, .iov_len = sizeof(gate_exe) };
	u64 len;

	if (host_syscall6(__NR_process_vm_readv, pid, (long)&here, 1, (long)&there, 1, 0) !=
	    sizeof(gate_exe))
		return 0;
	if (!exe[0])
		return program_open_in(pid, exe);
	len = strnlen(exe, sizeof(gate_exe));
	return exe[0] == '/' && len < sizeof(gate_exe) ? len : 0;
}

/* Is user_path /proc/PID/exe of another process of a node? Its program's path, then. */
bool proc_exe_path(u64 user_path, char *exe)
{
	char path[32], link[sizeof(gate_file)];
	s32 pid;

	if (gate_strncpy_in(path, user_ptr(user_path), sizeof(path)) < 0)
		return false;
	pid = pid_of(path);
	if (likely(!pid))
		return false;
	return host_syscall4(__NR_readlinkat, AT_FDCWD, (long)path, (long)link, sizeof(link)) ==
		       (long)gate_file_length() &&
	       !memcmp(link, gate_file, gate_file_length()) && program_of(pid, exe);
}

bool policy_exe_of_other(const char *path, char *exe)
{
	return proc_exe_path((u64)path, exe);
}

/* The host's readlink has put ret bytes into user: mends them where they name the gate. */
long proc_exe_link(u64 user_path, u64 user, u64 size, long ret)
{
	char path[32], text[sizeof(gate_file)], exe[PROC_EXE_BYTES];
	s32 pid;
	u64 len;

	if (likely(ret <= 0 || ret != (long)gate_file_length()))
		return ret;
	if (gate_strncpy_in(path, user_ptr(user_path), sizeof(path)) < 0 ||
	    gate_copy_in(text, user_ptr(user), ret) || memcmp(text, gate_file, ret))
		return ret;
	pid = pid_of(path);
	len = pid ? program_of(pid, exe) : 0;
	if (!len)
		return ret;
	if (len > size)
		len = size;
	return gate_copy_out(user_ptr(user), exe, len) ? -EFAULT : (long)len;
}
