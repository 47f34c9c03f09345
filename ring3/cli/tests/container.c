// SPDX-License-Identifier: GPL-2.0
/*
 * container PROGRAM [ARGUMENT]... - runs a program under a filter of host calls like the default one of Docker and
 * containerd, for a container without capabilities: what that refuses is refused, and no namespace can be made
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACES	0x7e020000	/* CLONE_NEW... of <linux/sched.h> */
#define NEWEST		451		/* of the calls that the filter knows, one more */

static const int refused[] = {
	SYS_acct, SYS_add_key, SYS_bpf, SYS_chroot, SYS_clock_settime, SYS_create_module, SYS_delete_module,
	SYS_fanotify_init, SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_kernel_syms,
	SYS_get_mempolicy, SYS_init_module, SYS_ioperm, SYS_iopl, SYS_io_uring_setup, SYS_io_uring_enter,
	SYS_io_uring_register, SYS_kcmp, SYS_kexec_file_load, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mbind,
	SYS_migrate_pages, SYS_mount, SYS_mount_setattr, SYS_move_mount, SYS_move_pages, SYS_nfsservctl,
	SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pidfd_getfd, SYS_pivot_root, SYS_process_madvise,
	SYS_query_module, SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_sethostname,
	SYS_setdomainname, SYS_setns, SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS__sysctl, SYS_sysfs, SYS_syslog,
	SYS_umount2, SYS_unshare, SYS_uselib, SYS_userfaultfd, SYS_ustat, SYS_vhangup,
};

#define COUNT	(sizeof(refused) / sizeof(refused[0]))

static struct sock_filter code[2 * COUNT + 32];
static unsigned short steps;

static void add(struct sock_filter step)
{
	code[steps++] = step;
}

static void load(unsigned int offset)
{
	add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void end(unsigned int action)
{
	add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* The next step but `count` unless what was loaded passes the test. */
static void unless(unsigned short test, unsigned int value, unsigned char count)
{
	add((struct sock_filter)BPF_JUMP(BPF_JMP | test | BPF_K, value, 0, count));
}

int main(int argc, char **argv)
{
	const unsigned int nr = offsetof(struct seccomp_data, nr), first = offsetof(struct seccomp_data, args[0]);
	const unsigned int eperm = SECCOMP_RET_ERRNO | EPERM;
	struct sock_fprog filter = { 0, code };

	if (argc < 2)
		return 2;
	load(nr);
	unless(BPF_JGE, NEWEST, 1);
	end(eperm);
	for (size_t n = 0; n < COUNT; n++) {
		unless(BPF_JEQ, refused[n], 1);
		end(eperm);
	}
	unless(BPF_JEQ, SYS_clone3, 1);
	end(SECCOMP_RET_ERRNO | ENOSYS);
	unless(BPF_JEQ, SYS_clone, 4);
	load(first);
	unless(BPF_JSET, NAMESPACES, 1);
	end(eperm);
	load(nr);
	unless(BPF_JEQ, SYS_socket, 4);
	load(first);
	unless(BPF_JEQ, AF_VSOCK, 1);
	end(eperm);
	load(nr);
	unless(BPF_JEQ, SYS_personality, 4);
	load(first);
	unless(BPF_JEQ, 0xffffffff, 1);
	end(SECCOMP_RET_ALLOW);
	end(eperm);
	end(SECCOMP_RET_ALLOW);
	filter.len = steps;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		perror("seccomp");
		return 1;
	}
	execvp(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
