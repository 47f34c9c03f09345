// SPDX-License-Identifier: GPL-2.0
/*
 * machine.c - settings of the whole machine are read-only on a node
 *
 * A program on a node that changes a setting means the node. But all settings other than the network's are the
 * host's, so root on a node would change them for the whole machine. So these files fail with EROFS if they are
 * opened for writing, as they do in containers:
 *
 *   /proc/sys, /proc/sysrq-trigger, /proc/irq and the like	but net (path.c), and what a namespace has of its own
 *   sysfs							but /sys/class/net and the like (path.c)
 *   binfmt_misc
 *
 * Not covered: /proc/PID, whose processes are the host's; /proc/pressure, where writing means waiting; other file
 * systems mounted below (cgroups, BPF, tracing); and system calls of the administrator (sethostname(),
 * clock_settime(), mount(), swapon()), for which the host requires its own root.
 *
 * The opened file decides, not the path that led to it. The path only says whether the file has to be checked.
 */
#include "policy.h"

#include <linux/magic.h>

#define NAME_BYTES	128

/* Files below /proc that may be written. Those in /proc/sys belong to a namespace, which may be the program's own. */
static const char *const open_to_write[] = {
	"pressure/",
	"sys/kernel/hostname", "sys/kernel/domainname",				/* UTS */
	"sys/kernel/msg", "sys/kernel/sem", "sys/kernel/shm", "sys/fs/mqueue/",	/* IPC */
	"sys/kernel/auto_msgmni",
	"sys/kernel/ns_last_pid",						/* PID */
	"sys/user/",								/* user */
};

static bool starts(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

static bool proc_is_machine(const char *name)
{
	u32 i;

	if (!starts(name, "/proc/"))
		return false;
	name += 6;
	for (i = 0; i < ARRAY_SIZE(open_to_write); i++)
		if (starts(name, open_to_write[i]))
			return false;
	return *name < '0' || *name > '9';
}

static bool is_machine(s32 fd, char name[NAME_BYTES])
{
	struct host_statfs fs;

	if (host_syscall2(__NR_fstatfs, fd, (long)&fs))
		return false;
	fd_link(fd, name, NAME_BYTES);
	return fs.type == SYSFS_MAGIC || fs.type == BINFMTFS_MAGIC || (fs.type == PROC_SUPER_MAGIC && proc_is_machine(name));
}

long machine_opened(s32 dirfd, u64 user_path, u64 flags, long fd)
{
	char name[NAME_BYTES];

	if (likely(fd < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH) || !path_is_near(dirfd, user_path) ||
		   !is_machine(fd, name)))
		return fd;
	host_syscall1(__NR_close, fd);
	gate_warn("%s is a setting of the whole machine: not to be written on a node", name);
	return -EROFS;
}
