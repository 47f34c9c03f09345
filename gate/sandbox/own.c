// SPDX-License-Identifier: GPL-2.0
/*
 * own.c - files of this process's own folder in /proc
 *
 * In a sandbox /proc cannot be seen: Landlock has no rule for folders that are not there yet. There the warden opens the
 * file, and the call that asks it has the number of uselib(), which the host has had no use for since 5.1
 * (ring3/sandbox/src/notify.rs). Anywhere else the host says ENOSYS.
 */
#include "internal.h"

/* The order of OWN_FILES in ring3/sandbox/src/list.rs. */
static const char *const files[] = {
	[OWN_MAPS] = "/proc/self/maps",
	[OWN_STATUS] = "/proc/self/status",
};

long own_open(enum own_file file)
{
	long fd = host_syscall3(__NR_openat, AT_FDCWD, (long)files[file], O_RDONLY | O_CLOEXEC);
	long asked;

	if (fd != -EACCES)
		return fd;
	asked = host_syscall1(__NR_uselib, file);
	return asked == -ENOSYS ? fd : asked;
}
