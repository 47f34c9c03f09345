// SPDX-License-Identifier: GPL-2.0
/* openat2() with limits to where a path may lead: the network's files are beneath /proc, and not to be left by. */
#include "oracle.h"
#include <linux/openat2.h>

static void try(int dir, const char *path, uint64_t resolve, const char *how)
{
	struct open_how h = { .flags = O_RDONLY | O_CLOEXEC, .resolve = resolve };
	int fd = syscall(SYS_openat2, dir, path, &h, sizeof(h));
	char line[8] = "";

	printf("%s %s: %s", path, how, ename(fd < 0 ? errno : 0));
	if (fd >= 0) {
		printf(", %s", read(fd, line, sizeof(line)) > 0 ? "read" : "empty");
		close(fd);
	}
	printf("\n");
}

int main(void)
{
	int proc = must(open("/proc", O_RDONLY | O_DIRECTORY)), net = must(open("/proc/sys/net", O_RDONLY | O_DIRECTORY));

	try(proc, "sys/net/core/somaxconn", 0, "anywhere");
	try(proc, "sys/net/core/somaxconn", RESOLVE_BENEATH, "beneath");
	try(proc, "sys/net/core/somaxconn", RESOLVE_NO_XDEV, "on the same file system");
	try(proc, "/proc/sys/net/core/somaxconn", RESOLVE_BENEATH, "beneath");
	try(proc, "/sys/net/core/somaxconn", RESOLVE_IN_ROOT, "in its root");
	try(net, "core/somaxconn", RESOLVE_BENEATH, "beneath");
	try(net, "../net/core/somaxconn", RESOLVE_BENEATH, "beneath");
	try(net, "core/../core/somaxconn", RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS, "beneath, no links");
	return 0;
}
