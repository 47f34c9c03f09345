// SPDX-License-Identifier: GPL-2.0
/* syscalls.c - the call tables: x86-64 Linux's own numbers, and ring3's */
#include <linux/errno.h>
#include <linux/file.h>
#include <linux/linkage.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include <asm/ring3_sendfile.h>
#include <asm/syscall.h>
#include <asm/unistd.h>
#include "cred.h"
#include "park.h"
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

SYSCALL_DEFINE6(mmap, unsigned long, addr, unsigned long, len, unsigned long, prot,
		unsigned long, flags, unsigned long, fd, unsigned long, off)
{
	if (off & ~PAGE_MASK)
		return -EINVAL;
	return ksys_mmap_pgoff(addr, len, prot, flags, fd, off >> PAGE_SHIFT);
}

/* These are about a program's registers, which the node never has. */
#define sys_rt_sigreturn	sys_ni_syscall
#define sys_iopl		sys_ni_syscall
#define sys_ioperm		sys_ni_syscall
#define sys_modify_ldt		sys_ni_syscall
#define sys_arch_prctl		sys_ni_syscall
#define sys_uretprobe		sys_ni_syscall
#define sys_map_shadow_stack	sys_ni_syscall
#define sys_fork		sys_ni_syscall
#define sys_vfork		sys_ni_syscall
#define sys_clone		sys_ni_syscall
#define sys_clone3		sys_ni_syscall
#define sys_execve		sys_ni_syscall
#define sys_execveat		sys_ni_syscall
#define sys_exit		sys_ni_syscall
#define sys_exit_group		sys_ni_syscall

/* The map of descriptors is unshared together with the file table. */
#define sys_unshare		ring3_unshare

#ifdef CONFIG_RING3_SIM
/* Each simulated host has a clock of the day of its own: turn/skew.c. */
#define sys_clock_gettime	sys_turn_clock_gettime
#define sys_gettimeofday	sys_turn_gettimeofday
#define sys_time		sys_turn_time
#define sys_clock_nanosleep	sys_turn_clock_nanosleep
#define sys_clock_settime	sys_turn_clock_settime
#define sys_settimeofday	sys_turn_settimeofday
#define sys_adjtimex		sys_turn_adjtimex
#define sys_clock_adjtime	sys_turn_clock_adjtime
#endif

#define __SYSCALL(nr, sym)	[nr] = (sys_call_ptr_t)sym,
#define __SYSCALL_NORETURN(nr, sym)	__SYSCALL(nr, sym)

const sys_call_ptr_t sys_call_table[NR_syscalls] = {
	[0 ... NR_syscalls - 1] = (sys_call_ptr_t)sys_ni_syscall,
#include <asm/syscall_table_64.h>
};

static long port_add(const struct ring3_port_config __user *ucfg)
{
	struct ring3_port_config cfg;

	if (copy_from_user(&cfg, ucfg, sizeof(cfg)))
		return -EFAULT;
	if (cfg.index >= RING3_PORTS_MAX || !memchr(cfg.name, 0, sizeof(cfg.name)))
		return -EINVAL;
	return ring3_port_add(&cfg);
}

/* A call of the slow path; the fast path indexes sys_call_table itself. */
long ring3_dispatch(struct ring3_thread *tb)
{
	const u64 *a = tb->args;

	if (tb->nr < NR_syscalls)
		return sys_call_table[tb->nr](a[0], a[1], a[2], a[3], a[4], a[5]);
	switch (tb->nr) {
	case RING3_NR_SPAWN:
		return ring3_sys_spawn(a[0]);
	case RING3_NR_CLONE:
		return ring3_sys_clone(a[0], a[1]);
	case RING3_NR_EXIT:
		return ring3_sys_exit(a[0], (u32 __user *)a[1], (u32 *)a[2]);
	case RING3_NR_EXIT_GROUP:
		return ring3_sys_exit_group(a[0]);
	case RING3_NR_EXEC:
		return ring3_sys_exec();
	case RING3_NR_REAP:
		return ring3_sys_reap((struct ring3_proc *)a[0]);
	case RING3_NR_FD_MOVE:
		return ring3_sys_fd_move(a[0], a[1], a[2]);
	case RING3_NR_PROXY:
		return ring3_sys_proxy(a[0]);
	case RING3_NR_PROXY_SET:
		return ring3_sys_proxy_set(a[0], a[1]);
	case RING3_NR_PROXY_CLEAR:
		return ring3_sys_proxy_clear(a[0]);
	case RING3_NR_PORT_ADD:
		return port_add((void __user *)a[0]);
	case RING3_NR_PORT_DEL:
		return ring3_port_del(a[0]);
	case RING3_NR_LOG_READ:
		return ring3_sys_log_read((char __user *)a[0], a[1], (u64 __user *)a[2]);
	case RING3_NR_MMAP:
		return ring3_sys_mmap(a[0], a[1], a[2]);
	case RING3_NR_MMAP_PAGE:
		return ring3_sys_mmap_page(a[0], a[1]);
	case RING3_NR_MUNMAP:
		return ring3_sys_munmap(a[0]);
	case RING3_NR_AT:
		return ring3_sys_at(a[0], a[1], a[2], a[3], a[4], a[5]);
	case RING3_NR_PARK:
		return ring3_sys_park(a[0], a[1]);
	case RING3_NR_UNPARK:
		return ring3_sys_unpark(a[0], a[1], a[2]);
	case RING3_NR_GRAB:
		return ring3_sys_grab(a[0], a[1], a[2]);
	case RING3_NR_FILE_CAPS:
		return ring3_sys_file_caps(a[0], a[1], a[2]);
	case RING3_NR_NEWUSER:
		return ring3_sys_newuser();
	case RING3_NR_NUMBER:
		return ring3_sys_number((struct ring3_thread *)a[0]);
	case RING3_NR_ADOPTER:
		return current->thread.tb == &ring3_region.init_thread ? ring3_sys_adopter() : -EPERM;
	case RING3_NR_SENDFILE:
		return ring3_sys_sendfile(a[0], a[1], a[2], a[3], a[4], (s64 __user *)a[5]);
	case RING3_NR_BEGIN:
		return ring3_sys_begin((struct ring3_thread *)a[0], a[1]);
	case RING3_NR_PIPE:
		return ring3_sys_pipe(a[0], a[1], a[2]);
	case RING3_NR_FUTEX_MEMORY:
		return ring3_sys_futex_memory(a[0], a[1], a[2], a[3]);
	case RING3_NR_HOST_WAIT:
		return ring3_sys_host_wait(a[0]);
	case RING3_NR_HOST_CHANGED:
		return ring3_sys_host_changed();
	case RING3_NR_IDS:
		return ring3_sys_ids(a[0], a[1], a[2], a[3]);
	}
	return -ENOSYS;
}
