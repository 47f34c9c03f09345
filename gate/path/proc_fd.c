// SPDX-License-Identifier: GPL-2.0
/*
 * proc_fd.c - descriptors of other processes, in /proc/PID/fd
 *
 * ss, lsof, fuser and netstat find the process that owns a socket by reading the links of all processes. For a
 * descriptor of the node, the host has a placeholder under the same number. The node knows the file: its tasks have
 * the pids of the host's processes, so /proc/PID/fd/N names the same descriptor on both sides. A number that only
 * the host uses is free in the node's table, or holds a proxy.
 */
#include "policy.h"

#define PROXY		"anon_inode:[ring3-proxy]"

bool proc_fd_is_node(s32 pid, s32 fd)
{
	char path[40], link[sizeof(PROXY)];
	long n;

	if ((u32)fd >= RING3_FDS_MAX)
		return false;
	gate_format(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	n = image_call4(__NR_readlinkat, AT_FDCWD, path, link, sizeof(link));
	if (n <= 0)
		return false;
	return n != sizeof(PROXY) - 1 || memcmp(link, PROXY, n);
}
