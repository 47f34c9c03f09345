// SPDX-License-Identifier: GPL-2.0
/*
 * null_tables.c - the tables of the node-less test build: all goes to the host
 */
#include "process/trace.h"
#include "../internal.h"

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

static long null_exit(struct gate_regs *r)
{
	gate_exit_task(r);
	return gate_exit(r);
}

static long null_close(struct gate_regs *r)
{
	return reserved_fd(r->a[0]) ? -EBADF : gate_host_regs(r);
}

static long null_close_range(struct gate_regs *r)
{
	struct gate_regs low = *r, high = *r;

	if (r->a[0] > gate_fd_base + GATE_RESERVED_FDS || r->a[1] < gate_fd_base)
		return gate_host_regs(r);
	low.a[1] = gate_fd_base - 1;
	high.a[0] = gate_fd_base + GATE_RESERVED_FDS;
	if (low.a[0] <= low.a[1])
		gate_host_regs(&low);
	return high.a[0] <= high.a[1] ? gate_host_regs(&high) : 0;
}

static long no_such_call(struct gate_regs *r)
{
	(void)r;
	return -ENOSYS;
}

const gate_handler gate_handlers[GATE_STRAIGHT_NR] = {
	[__NR_clone] = gate_clone,
	[__NR_clone3] = gate_clone,
	[__NR_fork] = gate_clone,
	[__NR_vfork] = gate_clone,
	[__NR_execve] = gate_execve,
	[__NR_execveat] = gate_execve,
	[__NR_exit] = null_exit,
	[__NR_exit_group] = gate_exit_group,
	[__NR_rt_sigaction] = gate_sigaction,
	[__NR_rt_sigprocmask] = gate_sigprocmask,
	[__NR_rt_sigreturn] = gate_sigreturn,
	[__NR_sigaltstack] = gate_sigaltstack,
	[__NR_restart_syscall] = gate_restart_syscall,
	[__NR_prctl] = gate_prctl,
	[__NR_seccomp] = gate_seccomp,
	[__NR_arch_prctl] = gate_arch_prctl,
	[__NR_close] = null_close,
	[__NR_close_range] = null_close_range,
	[__NR_io_uring_setup] = no_such_call,
};

/* Without a node all that has no handler may go directly; some does not (CLASS_GATE, 0), for the other entries. */
const u8 gate_classes[GATE_STRAIGHT_NR] = {
	[__NR_read] = CLASS_FD,
	[__NR_write] = CLASS_FD,
	[__NR_fcntl] = CLASS_FCNTL,
	[__NR_getppid] = CLASS_DIRECT,
	[__NR_getpid] = CLASS_DIRECT,
	[__NR_nanosleep] = CLASS_DIRECT,
	[__NR_clock_nanosleep] = CLASS_DIRECT,
	[__NR_futex] = CLASS_DIRECT,
	[__NR_pause] = CLASS_DIRECT,
	[__NR_wait4] = CLASS_DIRECT,
	[__NR_tgkill] = CLASS_DIRECT,
	[__NR_rt_sigsuspend] = CLASS_DIRECT,
	[__NR_poll] = CLASS_DIRECT,
};

const u8 gate_straight_calls[GATE_STRAIGHT_NR];

static void no_start(bool fresh)
{
}

static const struct gate_fork forks[] = {
	{ &gate_filter_lock, NULL },
	{ &gate_areas_lock, NULL },
	{ &gate_patch_lock, NULL },
	{ &gate_heap_lock, NULL },
	{ &gate_limits_lock, NULL },
	{ &gate_raised_lock, NULL },
	{ NULL, NULL },
};

static u32 no_stamp(void)
{
	return 0;
}

static u64 no_numbers(void)
{
	return 0;
}

static void no_inherit(u64 numbers)
{
}

static void no_shared(void)
{
}

static bool no_refusal(u64 flags)
{
	return false;
}

static void no_exec(bool begins)
{
}

static const char *own_exe(s32 dirfd, const char *path, char exe[PROC_EXE_BYTES])
{
	return gate_path_is_self_exe(path) ? gate_exe_file(exe, PROC_EXE_BYTES) : NULL;
}

static long host_unshare_files(void)
{
	return host_syscall1(__NR_unshare, CLONE_FILES);
}

static u32 other_threads(void)
{
	return READ_ONCE(gate.threads) - 1;
}

/* Without a node there is no adopter that could be the tracer. */
struct ring3_proc *trace_place_take(s32 tid)
{
	return NULL;
}

void trace_place_give(struct ring3_proc *own)
{
}

void trace_await(void)
{
}

const struct gate_life gate_life = {
	.start = no_start,
	.forks = forks,
	.stamp = no_stamp,
	.numbers = no_numbers,
	.inherit = no_inherit,
	.shared = no_shared,
	.refuses_ns = no_refusal,
	.exec = no_exec,
	.exe = own_exe,
	.grow = limits_grow,
	.others = other_threads,
	.unshare_files = host_unshare_files,
};
