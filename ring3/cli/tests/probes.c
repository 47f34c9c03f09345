// SPDX-License-Identifier: GPL-2.0
/*
 * probes.c - ways out, one by one, by host calls made directly (taken.h); static
 *
 *   probes [--take-over] FOLDER NAME PID [WRITABLE]
 *
 * Prints "PROBE RESULT GOES" for each: RESULT is 0, or the host's error number; GOES is the error by which a host that would do it says that it has
 * looked at the arguments, or 0. Outside, RESULT is one of these two where the host lets its user do that much; names of those
 * that need root, or what not each host has, begin with "?". Inside it is neither.
 *
 * FOLDER has the files "secret", "secret2" to "secret6", "spare", "spare2" and "script", the folder "below" and the socket "server"; NAME is an abstract
 * server's; PID is a process of the same user that leads its group; WRITABLE is a folder that the sandbox may write to.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taken.h"

static const char *folder, *name, *writable;
static long victim;

static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 asm("r10") = d;
	register long r8 asm("r8") = e;
	register long r9 asm("r9") = f;
	long ret;

	if (gadget)
		return direct(nr, a, b, c, d, e, f);
	asm volatile("syscall"
		     : "=a" (ret)
		     : "a" (nr), "D" (a), "S" (b), "d" (c), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

#define CALL7(nr, a, b, c, d, e, f, ...) call(nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define NR(nr, ...) CALL7(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL(nr, ...) NR(SYS_##nr, __VA_ARGS__)

/* In FOLDER; four at a time. */
static const char *at(const char *file)
{
	static char paths[4][512];
	static int turn;
	char *path = paths[turn++ % 4];

	snprintf(path, 512, "%s/%s", folder, file);
	return path;
}

static const char *of_victim(const char *file)
{
	static char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/%s", victim, file);
	return path;
}

static void say(const char *probe, long result, int goes)
{
	/* Of a descriptor. */
	if (result > 2 && result < 65536)
		CALL(close, result);
	printf("%s %ld %d\n", probe, result < 0 ? -result : 0, goes);
}

#define TRY(probe, goes, expression) say(probe, (long)(expression), goes)

/* ---- files ---- */

/* In a child, which ends whatever comes of it. */
static long in_child(long nr, long a, long b)
{
	int status = 0;
	long pid = CALL(fork, 0), ret;

	if (!pid) {
		ret = NR(nr, a, b);
		CALL(exit_group, ret < 0 ? -ret : 0);
	}
	CALL(wait4, pid, &status, 0, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static void names(void)
{
	static const struct { const char *name; long flags; } ways[] = {
		{ "read", O_RDONLY }, { "write", O_WRONLY }, { "both", O_RDWR }, { "truncating", O_WRONLY | O_TRUNC },
		{ "appending", O_WRONLY | O_APPEND }, { "direct", O_RDONLY | O_DIRECT }, { "nonblocking", O_RDONLY | O_NONBLOCK },
		{ "nofollow", O_RDONLY | O_NOFOLLOW }, { "noatime", O_RDONLY | O_NOATIME },
	};
	static const char * const folders[] = { "/usr", "/etc/ssl/certs", "/proc/self/root", "/proc/self/cwd" };
	struct { uint64_t flags, mode, resolve; } how = { O_RDONLY, 0, 0 };
	char text[1024];
	unsigned int i;
	long fd;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		snprintf(text, sizeof(text), "open-%s", ways[i].name);
		/* Files in memory can't be read directly. */
		say(text, CALL(open, at("secret"), ways[i].flags), ways[i].flags & O_DIRECT ? EINVAL : 0);
	}
	for (i = 0; i < 4; i++) {
		char probe[64];

		snprintf(probe, sizeof(probe), "open-from-%u", i);
		fd = CALL(open, folders[i], O_PATH);
		snprintf(text, sizeof(text), "../../../../../../..%s", at("secret"));
		say(probe, fd < 0 ? fd : CALL(openat, fd, text, O_RDONLY), 0);
		CALL(close, fd);
	}
	TRY("openat2", 0, NR(437, AT_FDCWD, at("secret"), &how, sizeof(how)));
	fd = CALL(open, at("secret"), O_PATH);
	snprintf(text, sizeof(text), "/proc/self/fd/%ld", fd);
	TRY("open-by-path-descriptor", 0, CALL(open, text, O_RDONLY));
	CALL(close, fd);
	TRY("open-creating", 0, CALL(open, at("new"), O_CREAT | O_WRONLY, 0600));
	TRY("creat", 0, CALL(creat, at("new2"), 0600));
	TRY("open-unnamed", EOPNOTSUPP, CALL(open, folder, O_TMPFILE | O_WRONLY, 0600));
	TRY("list", 0, CALL(open, folder, O_RDONLY | O_DIRECTORY));
	TRY("truncate", 0, CALL(truncate, at("secret"), 6));
	TRY("mkdir", 0, CALL(mkdir, at("new-folder"), 0700));
	TRY("mkdirat", 0, CALL(mkdirat, AT_FDCWD, at("new-folder2"), 0700));
	TRY("rmdir", 0, CALL(rmdir, at("below")));
	TRY("mknod-fifo", 0, CALL(mknod, at("new-fifo"), S_IFIFO | 0600, 0));
	TRY("mknodat-file", 0, CALL(mknodat, AT_FDCWD, at("new-file"), S_IFREG | 0600, 0));
	TRY("mknod-socket", 0, CALL(mknod, at("new-socket"), S_IFSOCK | 0600, 0));
	TRY("?mknod-disk", 0, CALL(mknod, at("new-disk"), S_IFBLK | 0600, makedev(8, 0)));
	TRY("symlink", 0, CALL(symlink, "/etc", at("new-link")));
	TRY("symlinkat", 0, CALL(symlinkat, "/etc", AT_FDCWD, at("new-link2")));
	TRY("link", 0, CALL(link, at("secret"), at("new-name")));
	TRY("linkat", 0, CALL(linkat, AT_FDCWD, at("secret"), AT_FDCWD, at("new-name2"), 0));
	TRY("rename", 0, CALL(rename, at("spare"), at("spared")));
	TRY("renameat", 0, CALL(renameat, AT_FDCWD, at("secret6"), AT_FDCWD, at("secret7")));
	TRY("renameat2-exchange", 0, CALL(renameat2, AT_FDCWD, at("secret"), AT_FDCWD, at("secret2"), 2));
	TRY("unlink", 0, CALL(unlink, at("spare2")));
	TRY("unlinkat", 0, CALL(unlinkat, AT_FDCWD, at("secret2"), 0));
	TRY("exec", 0, in_child(SYS_execve, (long)at("script"), 0));
	if (!writable)
		writable = folder;
	snprintf(text, sizeof(text), "%s/taken", writable);
	TRY("link-in", 0, CALL(link, at("secret3"), text));
	CALL(unlink, text);
	TRY("rename-in", 0, CALL(rename, at("secret3"), text));
	CALL(rename, text, at("secret3"));
	CALL(symlink, at("secret4"), text);
	TRY("read-by-own-link", 0, CALL(open, text, O_RDONLY));
	TRY("write-by-own-link", 0, CALL(open, text, O_WRONLY));
	CALL(unlink, text);
}

static void attributes(void)
{
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	struct { unsigned int bytes; int type; } handle = { 0 };
	const char *file = at("secret5");
	long fd = CALL(open, "/usr/bin/env", O_RDONLY), watcher;
	int id;

	TRY("chmod", 0, CALL(chmod, file, 0644));
	TRY("fchmodat", 0, CALL(fchmodat, AT_FDCWD, file, 0644));
	TRY("?fchmodat2", 0, NR(452, AT_FDCWD, file, 0644, 0));
	TRY("chown", 0, CALL(chown, file, -1, -1));
	TRY("lchown", 0, CALL(lchown, file, -1, -1));
	TRY("fchownat", 0, CALL(fchownat, AT_FDCWD, file, -1, -1, 0));
	TRY("fchown", 0, CALL(fchown, fd, -1, -1));
	TRY("?fchmod", 0, CALL(fchmod, fd, 0755));
	TRY("utime", 0, CALL(utime, file, 0));
	TRY("utimes", 0, CALL(utimes, file, 0));
	TRY("futimesat", 0, CALL(futimesat, AT_FDCWD, file, 0));
	TRY("utimensat", 0, CALL(utimensat, AT_FDCWD, file, times, 0));
	TRY("?setxattr", 0, CALL(setxattr, file, "user.x", "x", 1, 0));
	TRY("?lsetxattr", 0, CALL(lsetxattr, file, "user.x", "x", 1, 0));
	TRY("?getxattr", ENODATA, CALL(getxattr, file, "user.none", 0, 0));
	TRY("?lgetxattr", ENODATA, CALL(lgetxattr, file, "user.none", 0, 0));
	TRY("listxattr", 0, CALL(listxattr, file, 0, 0));
	TRY("llistxattr", 0, CALL(llistxattr, file, 0, 0));
	TRY("?removexattr", ENODATA, CALL(removexattr, file, "user.none"));
	TRY("?lremovexattr", ENODATA, CALL(lremovexattr, file, "user.none"));
	watcher = CALL(inotify_init1, 0);
	TRY("inotify", 0, CALL(inotify_add_watch, watcher, folder, 2) < 0 ? -EPERM : 0);
	CALL(close, watcher);
	TRY("?fanotify", 0, CALL(fanotify_init, 0, 0));
	TRY("handle", EOVERFLOW, CALL(name_to_handle_at, AT_FDCWD, file, &handle, &id, 0));
	TRY("?open-handle", EINVAL, CALL(open_by_handle_at, -1, &handle, 0));
	TRY("lease", EACCES, CALL(fcntl, fd, F_SETLEASE, F_RDLCK));
	TRY("notify", EACCES, CALL(fcntl, CALL(open, "/usr", O_RDONLY), F_NOTIFY, DN_CREATE));
	TRY("quotactl", EFAULT, CALL(quotactl, 0, 1, 0, 1));
	TRY("?swapon", EFAULT, CALL(swapon, 1, 0));
	TRY("?acct", EFAULT, CALL(acct, 1));
	TRY("fallocate", 0, CALL(fallocate, CALL(memfd_create, "x", 0), 0, 0, 4096));
	TRY("syncfs", EBADF, CALL(syncfs, -1));
	CALL(close, fd);
}

/* ---- the host's network, and servers of the user ---- */

static long named(long nr, int type, int abstract)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	long fd = CALL(socket, AF_UNIX, type, 0), ret;
	size_t len = offsetof(struct sockaddr_un, sun_path);

	if (fd < 0)
		return fd;
	if (abstract)
		len += 1 + (size_t)snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s%s", name, nr == SYS_bind ? "-new" : "");
	else
		len += (size_t)snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", folder, nr == SYS_bind ? "new-server" : "server");
	if (nr == SYS_sendto)
		ret = CALL(sendto, fd, "x", 1, MSG_NOSIGNAL, &to, len);
	else
		ret = NR(nr, fd, &to, len);
	if (!ret && nr == SYS_bind && abstract) {	/* the warden gives a name in a folder of its own */
		struct sockaddr_un is = { 0 };
		socklen_t is_len = sizeof(is);

		CALL(getsockname, fd, &is, &is_len);
		ret = is_len == len && !memcmp(&is, &to, len) ? 0 : -EXDEV;
	}
	CALL(close, fd);
	return ret < 0 ? ret : 0;
}

static void network(void)
{
	static const struct { const char *name; int family, type, protocol; } kinds[] = {
		{ "inet-stream", AF_INET, SOCK_STREAM, 0 }, { "inet-datagram", AF_INET, SOCK_DGRAM, 0 },
		{ "inet-datagram-cloexec", AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0 }, { "?inet-raw", AF_INET, SOCK_RAW, 1 },
		{ "?inet-ping", AF_INET, SOCK_DGRAM, 1 }, { "?inet-mptcp", AF_INET, SOCK_STREAM, 262 },
		{ "?inet-sctp", AF_INET, SOCK_SEQPACKET, 132 }, { "inet-udplite", AF_INET, SOCK_DGRAM, 136 },
		{ "inet6-stream", AF_INET6, SOCK_STREAM, 0 }, { "inet6-datagram", AF_INET6, SOCK_DGRAM, 0 },
		{ "?inet6-raw", AF_INET6, SOCK_RAW, 58 }, { "?packet-raw", AF_PACKET, SOCK_RAW, 0 },
		{ "?packet-datagram", AF_PACKET, SOCK_DGRAM, 0 }, { "netlink-route", AF_NETLINK, SOCK_RAW, 0 },
		{ "netlink-user", AF_NETLINK, SOCK_RAW, 2 }, { "?netlink-diag", AF_NETLINK, SOCK_RAW, 4 },
		{ "?netlink-xfrm", AF_NETLINK, SOCK_RAW, 6 }, { "?netlink-audit", AF_NETLINK, SOCK_RAW, 9 },
		{ "?netlink-connector", AF_NETLINK, SOCK_RAW, 11 }, { "?netlink-netfilter", AF_NETLINK, SOCK_RAW, 12 },
		{ "netlink-uevent", AF_NETLINK, SOCK_DGRAM, 15 }, { "netlink-generic", AF_NETLINK, SOCK_DGRAM, 16 },
		{ "?netlink-crypto", AF_NETLINK, SOCK_DGRAM, 21 }, { "?vsock", 40, SOCK_STREAM, 0 }, { "?crypto", 38, SOCK_SEQPACKET, 0 },
		{ "?bluetooth", 31, SOCK_RAW, 1 }, { "?can", 29, SOCK_RAW, 1 }, { "?key", 15, SOCK_RAW, 2 }, { "?tipc", 30, SOCK_SEQPACKET, 0 },
		{ "?xdp", 44, SOCK_RAW, 0 }, { "?qrtr", 42, SOCK_DGRAM, 0 }, { "?smc", 43, SOCK_STREAM, 0 }, { "?kcm", 41, SOCK_SEQPACKET, 0 },
		{ "?ax25", 3, SOCK_DGRAM, 0 }, { "?rds", 21, SOCK_SEQPACKET, 0 }, { "?nfc", 39, SOCK_SEQPACKET, 0 },
		{ "unix-datagram", AF_UNIX, SOCK_DGRAM, 0 }, { "unix-raw", AF_UNIX, SOCK_RAW, 0 },
		{ "unix-datagram-nonblock", AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0 },
	};
	struct ifreq_like { char name[16]; char rest[24]; } request = { "lo", { 0 } };
	struct { int len; void *at; } list = { 0, 0 };
	int pair[2];
	unsigned int i;
	long fd;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		say(kinds[i].name, CALL(socket, kinds[i].family, kinds[i].type, kinds[i].protocol), 0);
	TRY("pair-datagram", 0, CALL(socketpair, AF_UNIX, SOCK_DGRAM, 0, pair));
	TRY("connect-path", 0, named(SYS_connect, SOCK_STREAM, 0));
	TRY("connect-abstract", 0, named(SYS_connect, SOCK_STREAM, 1));
	TRY("connect-path-packets", EPROTOTYPE, named(SYS_connect, SOCK_SEQPACKET, 0));
	TRY("send-to-path", EPROTOTYPE, named(SYS_sendto, SOCK_DGRAM, 0));
	TRY("?send-to-abstract", ECONNREFUSED, named(SYS_sendto, SOCK_DGRAM, 1));
	TRY("stream-send-to-path", EOPNOTSUPP, named(SYS_sendto, SOCK_STREAM, 0));
	TRY("bind-path", 0, named(SYS_bind, SOCK_STREAM, 0));
	TRY("bind-abstract", 0, named(SYS_bind, SOCK_STREAM, 1));
	fd = CALL(socket, AF_UNIX, SOCK_STREAM, 0);
	TRY("interfaces", 0, CALL(ioctl, fd, 0x8912 /* SIOCGIFCONF */, &list));
	TRY("interface-flags", 0, CALL(ioctl, fd, 0x8913 /* SIOCGIFFLAGS */, &request));
	TRY("interface-index", 0, CALL(ioctl, fd, 0x8933 /* SIOCGIFINDEX */, &request));
	TRY("?network-of-socket", 0, CALL(ioctl, fd, 0x894c /* SIOCGSKNS */));
	CALL(close, fd);
}

/* ---- processes ---- */

static void processes(void)
{
	static const char * const files[] = {
		"cmdline", "comm", "stat", "status", "maps", "smaps", "environ", "auxv", "limits", "mountinfo", "cgroup", "wchan", "io", "mem",
		"fd", "ns", "task", "net/tcp",
	};
	siginfo_t info = { .si_code = SI_QUEUE };
	struct sched_param param = { 0 };
	struct { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t priority; uint64_t more[3]; } attr = { .size = 48 };
	struct rlimit now;
	cpu_set_t cpus;
	char byte, probe[64];
	struct iovec to = { &byte, 1 }, from = { (void *)0x1000, 1 };
	unsigned int i;
	long fd, heads[2];

	CALL(sched_getaffinity, 0, sizeof(cpus), &cpus);
	TRY("kill", 0, CALL(kill, victim, SIGCONT));
	TRY("kill-group", 0, CALL(kill, -victim, SIGCONT));
	TRY("tkill", 0, CALL(tkill, victim, SIGCONT));
	TRY("tgkill", 0, CALL(tgkill, victim, victim, SIGCONT));
	TRY("queue", 0, CALL(rt_sigqueueinfo, victim, SIGCONT, &info));
	TRY("queue-thread", 0, CALL(rt_tgsigqueueinfo, victim, victim, SIGCONT, &info));
	fd = CALL(pidfd_open, victim, 0);
	TRY("pidfd-signal", 0, CALL(pidfd_send_signal, fd, SIGCONT, 0, 0));
	TRY("pidfd-getfd", 0, NR(438, fd, 0, 0));
	TRY("process-madvise", EINVAL, NR(440, fd, &from, 1, 99, 0));
	TRY("?process-mrelease", EINVAL, NR(448, fd, 0));
	TRY("pidfd-setns", EINVAL, CALL(setns, fd, 0));
	CALL(close, fd);
	TRY("read-memory", EFAULT, CALL(process_vm_readv, victim, &to, 1, &from, 1, 0));
	TRY("write-memory", EFAULT, CALL(process_vm_writev, victim, &to, 1, &from, 1, 0));
	TRY("attach", 0, CALL(ptrace, PTRACE_SEIZE, victim, 0, 0));
	CALL(ptrace, PTRACE_DETACH, victim, 0, 0);
	TRY("robust-list", 0, CALL(get_robust_list, victim, heads, heads + 1));
	TRY("compare", 0, CALL(kcmp, victim, victim, 0, 0, 0));
	TRY("?watch-counters", EFAULT, CALL(perf_event_open, 0, victim, -1, -1, 0));
	for (i = 0; i < RLIM_NLIMITS; i++) {
		snprintf(probe, sizeof(probe), "limit-%u", i);
		say(probe, CALL(prlimit64, victim, i, 0, &now), 0);
	}
	CALL(prlimit64, 0, RLIMIT_NOFILE, 0, &now);
	TRY("affinity", 0, CALL(sched_setaffinity, victim, sizeof(cpus), &cpus));
	TRY("scheduler", 0, CALL(sched_setscheduler, victim, SCHED_OTHER, &param));
	TRY("scheduler-parameters", 0, CALL(sched_setparam, victim, &param));
	TRY("scheduler-attributes", 0, CALL(sched_setattr, victim, &attr, 0));
	TRY("priority", 0, CALL(setpriority, PRIO_PROCESS, victim, 0));
	TRY("priority-group", 0, CALL(setpriority, PRIO_PGRP, victim, 0));
	TRY("io-priority", 0, CALL(ioprio_set, 1, victim, 0));
	TRY("io-priority-read", 0, CALL(ioprio_get, 1, victim) < 0 ? -EPERM : 0);
	TRY("?move-pages", 0, CALL(move_pages, victim, 0, 0, 0, 0, 0));
	TRY("?migrate-pages", 0, CALL(migrate_pages, victim, 0, 0, 0));
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		snprintf(probe, sizeof(probe), "proc-%s", files[i]);
		say(probe, CALL(open, of_victim(files[i]), O_RDONLY), 0);
	}
	TRY("proc-list", 0, CALL(open, "/proc", O_RDONLY | O_DIRECTORY));
	TRY("proc-limits-of-all", 0, CALL(open, "/proc/sys/kernel/pid_max", O_RDONLY));
}

/* ---- namespaces, file systems, the host's kernel ---- */

static long cloned(long flags)
{
	long pid = CALL(clone, flags | SIGCHLD, 0, 0, 0, 0);

	if (!pid)
		CALL(exit_group, 0);
	if (pid > 0)
		CALL(wait4, pid, 0, 0, 0);
	return pid < 0 ? pid : 0;
}

static long interrupted_by_32_bit(void)
{
	int status = 0;
	long pid = CALL(fork, 0);

	if (!pid) {
		long ret;

		/* getpid() of the 32-bit interface. */
		asm volatile("int $0x80" : "=a" (ret) : "a" (20L) : "memory");
		CALL(exit_group, ret > 0 ? 0 : ENOSYS);
	}
	CALL(wait4, pid, &status, 0, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EPERM;
}

static void kernel(void)
{
	static const struct { const char *name; long flag; } spaces[] = {
		{ "user", CLONE_NEWUSER }, { "mount", CLONE_NEWNS }, { "pid", CLONE_NEWPID }, { "network", CLONE_NEWNET }, { "ipc", CLONE_NEWIPC },
		{ "name", CLONE_NEWUTS }, { "cgroup", 0x02000000 },
	};
	struct { uint64_t flags, more[10]; } args = { CLONE_NEWUSER, { 0 } };
	struct { uint64_t fs, net, scope; } rules = { 1, 0, 0 };
	struct rlimit none = { 0, 0 };
	char probe[64];
	unsigned int i;

	for (i = 0; i < 7; i++) {
		/* Another namespace than a user's needs a right that comes with one. */
		snprintf(probe, sizeof(probe), "?unshare-%s", spaces[i].name);
		say(probe, in_child(SYS_unshare, spaces[i].flag, 0), 0);
		snprintf(probe, sizeof(probe), "?clone-%s", spaces[i].name);
		say(probe, cloned(spaces[i].flag), 0);
		snprintf(probe, sizeof(probe), "?clone-user-and-%s", spaces[i].name);
		say(probe, cloned(spaces[i].flag | CLONE_NEWUSER), 0);
	}
	TRY("clone3", EINVAL, NR(435, &args, 8));
	TRY("setns", EBADF, CALL(setns, -1, 0));
	TRY("?chroot", 0, in_child(SYS_chroot, (long)folder, 0));
	TRY("?pivot", EFAULT, CALL(pivot_root, 1, 1));
	TRY("?mount", EFAULT, CALL(mount, 1, 1, 1, 0, 1));
	TRY("?umount", EFAULT, CALL(umount2, 1, 0));
	TRY("?open-tree", EFAULT, NR(428, AT_FDCWD, 1, 0));
	TRY("?move-mount", EFAULT, NR(429, AT_FDCWD, 1, AT_FDCWD, 1, 0));
	TRY("?fsopen", EFAULT, NR(430, 1, 0));
	TRY("?fsconfig", EINVAL, NR(431, -1, 0, 0, 0, 0));
	TRY("?fsmount", EBADF, NR(432, -1, 0, 0));
	TRY("?fspick", EFAULT, NR(433, AT_FDCWD, 1, 0));
	TRY("?mount-setattr", EINVAL, NR(442, AT_FDCWD, 1, 0, 0, 0));
	TRY("?listmount", EFAULT, NR(458, 1, 0, 0, 0));
	TRY("?statmount", EFAULT, NR(457, 1, 0, 0, 0));
	TRY("io-uring", EFAULT, CALL(io_uring_setup, 1, 0));
	TRY("?io-uring-enter", EBADF, CALL(io_uring_enter, -1, 0, 0, 0, 0, 0));
	TRY("?io-uring-register", EINVAL, CALL(io_uring_register, -1, 99, 0, 0));
	TRY("?bpf-map", EINVAL, CALL(bpf, 0, 0, 0));
	TRY("?bpf-load", EFAULT, CALL(bpf, 5, 1, 48));
	TRY("?userfaultfd", EINVAL, CALL(userfaultfd, 0x7fff0000));
	TRY("?add-key", EFAULT, CALL(add_key, 1, 0, 0, 0, 0));
	TRY("?request-key", EFAULT, CALL(request_key, 1, 0, 0, 0));
	TRY("?keyctl", EOPNOTSUPP, CALL(keyctl, 9999));
	TRY("?segment", EINVAL, CALL(shmget, 0, 0, 0));
	TRY("?segment-attach", EINVAL, CALL(shmat, -1, 0, 0));
	TRY("?segment-control", EINVAL, CALL(shmctl, -1, 0, 0));
	TRY("?semaphore", EINVAL, CALL(semget, 0, -1, 0));
	TRY("?semaphore-control", EINVAL, CALL(semctl, -1, 0, 0, 0));
	TRY("?queue-get", ENOENT, CALL(msgget, 0x5ec2e7, 0));
	TRY("?queue-send", EFAULT, CALL(msgsnd, -1, 1, 0, 0));
	TRY("?message-queue", EFAULT, CALL(mq_open, 1, 0, 0, 0));
	TRY("?message-queue-unlink", EFAULT, CALL(mq_unlink, 1));
	TRY("?module", EFAULT, CALL(init_module, 1, 0, 1));
	TRY("?module-file", EBADF, CALL(finit_module, -1, "", 0));
	TRY("?module-remove", EFAULT, CALL(delete_module, 1, 0));
	TRY("?kexec", EINVAL, CALL(kexec_load, 0, 99, 0, 0));
	TRY("?reboot", EINVAL, CALL(reboot, 0, 0, 0));
	TRY("?host-name", EINVAL, CALL(sethostname, "", -1));
	TRY("?domain-name", EINVAL, CALL(setdomainname, "", -1));
	TRY("?clock", EINVAL, CALL(clock_settime, 99, 0));
	TRY("?time-of-day", EFAULT, CALL(settimeofday, 1, 0));
	TRY("?adjust", EFAULT, CALL(adjtimex, 1));
	TRY("?clock-adjust", EINVAL, CALL(clock_adjtime, 99, 0));
	TRY("?ports", EINVAL, CALL(ioperm, -1, 1, 1));
	TRY("?privilege-level", EINVAL, CALL(iopl, 9));
	TRY("?log", EINVAL, CALL(syslog, 99, 0, 0));
	TRY("descriptor-table", EINVAL, (int)CALL(modify_ldt, 1, 0, 0));
	TRY("?secret-memory", EINVAL, NR(447, 0xffff));
	TRY("?memory-policy", EINVAL, CALL(set_mempolicy, 99, 0, 0));
	TRY("personality", 0, CALL(personality, 0));
	TRY("swapped-memory", EINVAL, CALL(remap_file_pages, 1, 0, 1, 0, 0));
	TRY("type-into-terminal", ENOTTY, CALL(ioctl, 0, 0x5412 /* TIOCSTI */, "x"));
	TRY("terminal-selection", ENOTTY, CALL(ioctl, 0, 0x541c /* TIOCLINUX */, "x"));
	TRY("controlling-terminal", ENOTTY, CALL(ioctl, 0, 0x540e /* TIOCSCTTY */, 0));
	TRY("foreground-group", ENOTTY, CALL(ioctl, 0, 0x5410 /* TIOCSPGRP */, &i));
	TRY("signal-owner", 0, CALL(fcntl, 1, F_SETOWN, victim));
	TRY("signal-number", 0, CALL(fcntl, 1, 10 /* F_SETSIG */, 0));
	TRY("core-limit", 0, CALL(setrlimit, RLIMIT_CORE, &none));
	TRY("mergeable-memory", 0, CALL(prctl, 67 /* PR_SET_MEMORY_MERGE */, 0, 0, 0, 0));
	TRY("memory-map", EINVAL, CALL(prctl, 35 /* PR_SET_MM */, 99, 0, 0, 0));
	TRY("?core-scheduling", EINVAL, CALL(prctl, 62 /* PR_SCHED_CORE */, 99, 0, 0, 0));
	TRY("32-bit-interface", 0, interrupted_by_32_bit());
	TRY("?x32-interface", 0, NR(0x40000000 | SYS_getpid, 0) > 0 ? 0 : -ENOSYS);
	/* A domain of its own does not take it out of the one that it is in. */
	TRY("second-domain", 0, CALL(landlock_create_ruleset, &rules, sizeof(rules), 0) < 0 ? -ENOSYS : CALL(open, at("secret"), O_RDONLY));
}

int main(int argc, char **argv)
{
	int first = 1;

	if (first < argc && !strcmp(argv[first], "--take-over"))
		take_over(), first++;
	if (argc < first + 3)
		return 2;
	folder = argv[first], name = argv[first + 1], victim = atol(argv[first + 2]);
	writable = first + 3 < argc ? argv[first + 3] : NULL;
	setvbuf(stdout, NULL, _IONBF, 0);
	names();
	attributes();
	network();
	processes();
	kernel();
	return 0;
}
