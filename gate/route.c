// SPDX-License-Identifier: GPL-2.0
/*
 * route.c - the table of system calls
 *
 * A call without a handler goes to the host as it is. Most of those with one
 * take a descriptor first and differ only in whose it is: by_fd().
 */
#include "policy.h"

static long by_fd(struct gate_regs *r)
{
	if (fd_is_node(r->a[0]))
		return image_pass(r);
	return unlikely(reserved_fd(r->a[0])) ? -EBADF : gate_host_regs(r);
}

/* Rings would be served by the host's stack: refused until the node has its own. */
static long no_such_call(struct gate_regs *r)
{
	(void)r;
	return -ENOSYS;
}

static const gate_handler handlers[512] = {
	[__NR_read] = by_fd,
	[__NR_write] = by_fd,
	[__NR_open] = do_open,
	[__NR_close] = do_close,
	[__NR_stat] = do_path,
	[__NR_fstat] = by_fd,
	[__NR_lstat] = do_path,
	[__NR_poll] = do_poll,
	[__NR_lseek] = by_fd,
	[__NR_mmap] = do_mmap,
	[__NR_munmap] = do_munmap,
	[__NR_mremap] = do_mremap,
	[__NR_ioctl] = do_ioctl,
	[__NR_pread64] = by_fd,
	[__NR_pwrite64] = by_fd,
	[__NR_readv] = by_fd,
	[__NR_writev] = by_fd,
	[__NR_access] = do_path,
	[__NR_select] = do_select,
	[__NR_dup] = do_dup,
	[__NR_dup2] = do_dup2,
	[__NR_sendfile] = do_sendfile,
	[__NR_socket] = do_socket,
	[__NR_connect] = do_bind,
	[__NR_accept] = do_accept,
	[__NR_sendto] = do_sendto,
	[__NR_recvfrom] = do_recvfrom,
	[__NR_sendmsg] = do_sendmsg,
	[__NR_recvmsg] = do_recvmsg,
	[__NR_shutdown] = by_fd,
	[__NR_bind] = do_bind,
	[__NR_listen] = by_fd,
	[__NR_getsockname] = do_getsockname,
	[__NR_getpeername] = do_getsockname,
	[__NR_socketpair] = do_socketpair,
	[__NR_setsockopt] = by_fd,
	[__NR_getsockopt] = do_getsockopt,
	[__NR_fcntl] = do_fcntl,
	[__NR_flock] = by_fd,
	[__NR_fsync] = by_fd,
	[__NR_fdatasync] = by_fd,
	[__NR_truncate] = do_path,
	[__NR_ftruncate] = by_fd,
	[__NR_getdents] = by_fd,
	[__NR_chdir] = do_chdir,
	[__NR_fchdir] = do_fchdir,
	[__NR_creat] = do_open,
	[__NR_mkdir] = do_path,
	[__NR_rmdir] = do_path,
	[__NR_unlink] = do_path,
	[__NR_readlink] = do_path,
	[__NR_chmod] = do_path,
	[__NR_fchmod] = by_fd,
	[__NR_chown] = do_path,
	[__NR_fchown] = by_fd,
	[__NR_lchown] = do_path,
	[__NR_statfs] = do_path,
	[__NR_fstatfs] = by_fd,
	[__NR_readahead] = by_fd,
	[__NR_fsetxattr] = by_fd,
	[__NR_getxattr] = do_path,
	[__NR_lgetxattr] = do_path,
	[__NR_fgetxattr] = by_fd,
	[__NR_listxattr] = do_path,
	[__NR_llistxattr] = do_path,
	[__NR_flistxattr] = by_fd,
	[__NR_fremovexattr] = by_fd,
	[__NR_epoll_create] = do_epoll_create,
	[__NR_getdents64] = do_getdents64,
	[__NR_fadvise64] = by_fd,
	[__NR_mlockall] = do_mlockall,
	[__NR_epoll_wait] = do_epoll_wait,
	[__NR_epoll_ctl] = do_epoll_ctl,
	[__NR_openat] = do_openat,
	[__NR_mkdirat] = do_path_at,
	[__NR_mknodat] = do_path_at,
	[__NR_fchownat] = do_path_at,
	[__NR_futimesat] = do_path_at,
	[__NR_newfstatat] = do_path_at,
	[__NR_unlinkat] = do_path_at,
	[__NR_readlinkat] = do_path_at,
	[__NR_fchmodat] = do_path_at,
	[__NR_faccessat] = do_path_at,
	[__NR_pselect6] = do_select,
	[__NR_ppoll] = do_poll,
	[__NR_kill] = do_kill,
	[__NR_rt_sigqueueinfo] = do_kill,
	[__NR_tkill] = do_tkill,
	[__NR_tgkill] = do_tgkill,
	[__NR_rt_tgsigqueueinfo] = do_tgkill,
	[__NR_pidfd_send_signal] = do_pidfd_send_signal,
	[__NR_unshare] = do_unshare,
	[__NR_setuid] = do_setid,
	[__NR_setgid] = do_setid,
	[__NR_setreuid] = do_setid,
	[__NR_setregid] = do_setid,
	[__NR_setgroups] = do_setid,
	[__NR_setresuid] = do_setid,
	[__NR_setresgid] = do_setid,
	[__NR_setfsuid] = do_setid,
	[__NR_setfsgid] = do_setid,
	[__NR_capset] = do_capset,
	[__NR_mount] = do_mount,
	[__NR_umount2] = do_umount,
	[__NR_splice] = do_splice,
	[__NR_tee] = do_tee,
	[__NR_sync_file_range] = by_fd,
	[__NR_vmsplice] = by_fd,
	[__NR_utimensat] = do_path_at,
	[__NR_epoll_pwait] = do_epoll_wait,
	[__NR_signalfd] = do_signalfd,
	[__NR_fallocate] = by_fd,
	[__NR_timerfd_settime] = by_fd,
	[__NR_timerfd_gettime] = by_fd,
	[__NR_accept4] = do_accept,
	[__NR_signalfd4] = do_signalfd,
	[__NR_epoll_create1] = do_epoll_create,
	[__NR_dup3] = do_dup3,
	[__NR_preadv] = by_fd,
	[__NR_pwritev] = by_fd,
	[__NR_recvmmsg] = do_recvmmsg,
	[__NR_syncfs] = by_fd,
	[__NR_sendmmsg] = do_sendmmsg,
	[__NR_setns] = do_setns,
	[__NR_bpf] = do_bpf,
	[__NR_copy_file_range] = do_copy_file_range,
	[__NR_preadv2] = by_fd,
	[__NR_pwritev2] = by_fd,
	[__NR_statx] = do_path_at,
	[__NR_utime] = do_proc_exe,
	[__NR_utimes] = do_proc_exe,
	[__NR_setxattr] = do_proc_exe,
	[__NR_removexattr] = do_proc_exe,
	[__NR_linkat] = do_proc_exe,
	[__NR_inotify_add_watch] = do_proc_exe,
	[__NR_fanotify_mark] = do_proc_exe,
	[__NR_name_to_handle_at] = do_proc_exe,
	[__NR_open_tree] = do_proc_exe,
	[__NR_move_mount] = do_proc_exe,
	[__NR_mount_setattr] = do_proc_exe,
	[__NR_fspick] = do_proc_exe,
	[__NR_fchmodat2] = do_proc_exe,
	[__NR_io_uring_setup] = no_such_call,
	[__NR_io_uring_enter] = no_such_call,
	[__NR_io_uring_register] = no_such_call,
	[__NR_close_range] = do_close_range,
	[__NR_landlock_create_ruleset] = do_landlock_create_ruleset,
	[__NR_openat2] = do_openat2,
	[__NR_pidfd_getfd] = do_pidfd_getfd,
	[__NR_faccessat2] = do_path_at,
	[__NR_epoll_pwait2] = do_epoll_wait,

	/* The mechanism's. */
	[__NR_rt_sigaction] = gate_sigaction,
	[__NR_rt_sigprocmask] = gate_sigprocmask,
	[__NR_rt_sigsuspend] = gate_sigsuspend,
	[__NR_rt_sigreturn] = gate_sigreturn,
	[__NR_sigaltstack] = gate_sigaltstack,
	[__NR_restart_syscall] = gate_restart_syscall,
	[__NR_nanosleep] = gate_nanosleep,
	[__NR_clock_nanosleep] = gate_nanosleep,
	[__NR_clone] = gate_clone,
	[__NR_clone3] = gate_clone,
	[__NR_fork] = gate_clone,
	[__NR_vfork] = gate_clone,
	[__NR_execve] = gate_execve,
	[__NR_execveat] = gate_execve,
	[__NR_exit] = do_exit,
	[__NR_exit_group] = gate_exit_group,
	[__NR_prctl] = gate_prctl,
	[__NR_getrlimit] = do_rlimit,
	[__NR_setrlimit] = do_rlimit,
	[__NR_prlimit64] = do_rlimit,
	[__NR_wait4] = do_wait4,
	[__NR_waitid] = do_waitid,
	[__NR_ptrace] = do_ptrace,
	[__NR_setpgid] = do_setpgid,
	[__NR_setsid] = do_setsid,
	[__NR_seccomp] = gate_seccomp,
	[__NR_arch_prctl] = gate_arch_prctl,
};

long gate_syscall(struct gate_regs *r)
{
	gate_handler handler = r->nr < 512 ? handlers[r->nr] : 0;

	if (unlikely(policy_sim()))
		return sim_syscall(r, handler);
	return handler ? handler(r) : gate_host_regs(r);
}

/*
 * Calls with nothing to do before or after. Not here though their first argument
 * is a descriptor: what makes or closes descriptors, ioctl (FIOCLEX), getsockopt
 * (peel-off makes a descriptor), waiting on epoll.
 */
u8 gate_straight[GATE_STRAIGHT_NR] = {
	[__NR_read] = GATE_STRAIGHT,
	[__NR_write] = GATE_STRAIGHT,
	[__NR_fstat] = GATE_STRAIGHT,
	[__NR_lseek] = GATE_STRAIGHT,
	[__NR_pread64] = GATE_STRAIGHT,
	[__NR_pwrite64] = GATE_STRAIGHT,
	[__NR_readv] = GATE_STRAIGHT,
	[__NR_writev] = GATE_STRAIGHT,
	[__NR_connect] = GATE_STRAIGHT,
	[__NR_sendto] = GATE_STRAIGHT,
	[__NR_recvfrom] = GATE_STRAIGHT,
	[__NR_sendmsg] = GATE_STRAIGHT,
	[__NR_recvmsg] = GATE_STRAIGHT,
	[__NR_shutdown] = GATE_STRAIGHT,
	[__NR_bind] = GATE_STRAIGHT,
	[__NR_listen] = GATE_STRAIGHT,
	[__NR_getsockname] = GATE_STRAIGHT,
	[__NR_getpeername] = GATE_STRAIGHT,
	[__NR_setsockopt] = GATE_STRAIGHT,
	[__NR_fcntl] = GATE_STRAIGHT_FCNTL,
	[__NR_getdents64] = GATE_STRAIGHT,
	[__NR_preadv] = GATE_STRAIGHT,
	[__NR_pwritev] = GATE_STRAIGHT,
	[__NR_recvmmsg] = GATE_STRAIGHT,
	[__NR_sendmmsg] = GATE_STRAIGHT,
	[__NR_preadv2] = GATE_STRAIGHT,
	[__NR_pwritev2] = GATE_STRAIGHT,
};

u32 gate_class(u64 nr)
{
	if (nr >= ARRAY_SIZE(handlers))
		return CLASS_GATE;
	if (policy_sim())
		return CLASS_GATE;	/* what may wait in the host is looked at first */
	if (!handlers[nr])
		return CLASS_DIRECT;
	if (nr == __NR_fcntl)
		return CLASS_FCNTL;	/* do_fcntl() passes these on whoever's they are */
	if (nr == __NR_sendto || nr == __NR_recvfrom)
		return CLASS_FD_NAME;
	return handlers[nr] == by_fd && gate_straight[nr] == GATE_STRAIGHT ? CLASS_FD : CLASS_GATE;
}

void policy_start(bool fresh)
{
	if (fresh)
		fd_start();
	feed_forked();
	if (!fresh)
		ep_inherited();
}

void policy_shared(void)
{
	ep_shared();
}

bool policy_refuses_ns(u64 flags)
{
	return ns_refuses(flags);
}

void policy_fork(enum gate_fork_phase phase)
{
	if (phase == GATE_FORK_PREPARE) {
		trace_fork(phase);
		map_fork(phase);
		ticket_fork(phase);
		ep_fork_lock();
		feed_fork_lock();
		return;
	}
	if (phase == GATE_FORK_CHILD) {
		helper_forked();
		xfer_forked();
		fd_forked();
		feed_forked();
		ep_forked();
	}
	feed_fork_unlock();
	ep_fork_unlock();
	ticket_fork(phase);
	map_fork(phase);
	trace_fork(phase);
}
