// SPDX-License-Identifier: GPL-2.0
/*
 * null_route.c - the policy of the node-less test build: all goes to the host
 */
#include "../internal.h"

u8 gate_straight[GATE_STRAIGHT_NR];

bool cred_prctl_is(u64 option)
{
	return false;
}

long cred_prctl(struct gate_regs *r)
{
	return gate_host_regs(r);
}

void cred_of_file(int fd)
{
	(void)fd;
}

bool cred_host_ignores_set_id(const struct stat *st)
{
	(void)st;
	return false;
}

void cred_align(const u64 *auxv)
{
}

long gate_syscall(struct gate_regs *r)
{
	switch (r->nr) {
	case __NR_clone:
	case __NR_clone3:
	case __NR_fork:
	case __NR_vfork:
		return gate_clone(r);
	case __NR_execve:
	case __NR_execveat:
		return gate_execve(r);
	case __NR_exit:
		gate_exit_task(r);
		return gate_exit(r);
	case __NR_exit_group:
		return gate_exit_group(r);
	case __NR_rt_sigaction:
		return gate_sigaction(r);
	case __NR_rt_sigprocmask:
		return gate_sigprocmask(r);
	case __NR_rt_sigreturn:
		return gate_sigreturn(r);
	case __NR_sigaltstack:
		return gate_sigaltstack(r);
	case __NR_restart_syscall:
		return gate_restart_syscall(r);
	case __NR_prctl:
		return gate_prctl(r);
	case __NR_seccomp:
		return gate_seccomp(r);
	case __NR_arch_prctl:
		return gate_arch_prctl(r);
	case __NR_close:
		if (reserved_fd(r->a[0]))
			return -EBADF;
		break;
	case __NR_close_range: {
		struct gate_regs low = *r, high = *r;

		if (r->a[0] > gate_fd_base + GATE_RESERVED_FDS || r->a[1] < gate_fd_base)
			break;
		low.a[1] = gate_fd_base - 1;
		high.a[0] = gate_fd_base + GATE_RESERVED_FDS;
		if (low.a[0] <= low.a[1])
			gate_host_regs(&low);
		return high.a[0] <= high.a[1] ? gate_host_regs(&high) : 0;
	}
	case __NR_io_uring_setup:
		return -ENOSYS;
	}
	return gate_host_regs(r);
}

u32 helper_others(void)
{
	return thread_others();
}

/* Without a node all that is not named above may go directly; some do not, for the other entries. */
u32 gate_class(u64 nr)
{
	switch (nr) {
	case __NR_read:
	case __NR_write:
		return CLASS_FD;
	case __NR_fcntl:
		return CLASS_FCNTL;
	case __NR_getppid:
	case __NR_getpid:
	case __NR_nanosleep:
	case __NR_clock_nanosleep:
	case __NR_futex:
	case __NR_pause:
	case __NR_wait4:
	case __NR_tgkill:
	case __NR_rt_sigsuspend:
	case __NR_poll:
		return CLASS_DIRECT;
	}
	return CLASS_GATE;
}

u32 policy_stamp(void)
{
	return 0;
}

u64 policy_numbers(void)
{
	return 0;
}

void policy_exec(bool begins)
{
	(void)begins;
}

void policy_inherit(u64 numbers)
{
	(void)numbers;
}

void policy_shared(void)
{
}

const char *policy_exe(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES])
{
	return gate_path_is_self_exe(path) ? gate_exe_file(exe, PROC_EXE_BYTES) : NULL;
}

bool policy_refuses_ns(u64 flags)
{
	(void)flags;
	return false;
}

void policy_fork(enum gate_fork_phase phase)
{
	(void)phase;
}

void policy_start(bool fresh)
{
	(void)fresh;
}
