// SPDX-License-Identifier: GPL-2.0
/*
 * attacker.c - what a hostile program tries; static, so that nothing but this file is between it and the host
 *
 *   attacker [--take-over] [FILES FOLDER NAME PID] ATTACK|NUMBER...
 *
 * Prints "ATTACK RESULT" for each: 0, or the host's error number. With --take-over it first takes its node over (taken.h).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taken.h"

static const char *secret, *folder, *name;
static long victim;

/* Straight to the host where the node's text has been written to; by the C library elsewhere. */
static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	long ret;

	if (gadget)
		return direct(nr, a, b, c, d, e, f);
	ret = syscall(nr, a, b, c, d, e, f);
	return ret < 0 ? -errno : ret;
}

#define CALL6(nr, a, b, c, d, e, f, ...) call(SYS_##nr, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define CALL(nr, ...) CALL6(nr, __VA_ARGS__, 0, 0, 0, 0, 0, 0)

static long done(long ret)
{
	if (ret >= 0)
		CALL(close, ret);
	return ret < 0 ? ret : 0;
}

/* The warden gives a name in a folder of its own. */
static long is_named(int fd, const struct sockaddr_un *to, size_t len)
{
	struct sockaddr_un is;
	socklen_t is_len = sizeof(is);
	long ret = CALL(getsockname, fd, &is, &is_len);

	return ret ? ret : is_len == len && !memcmp(&is, to, len) ? 0 : -EXDEV;
}

static long unix_name(int abstract, int nr)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	long fd = CALL(socket, AF_UNIX, SOCK_STREAM, 0), ret;
	size_t len = offsetof(struct sockaddr_un, sun_path);

	if (fd < 0)
		return fd;
	if (abstract)
		len += 1 + snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "%s%s", name, nr == SYS_bind ? "-new" : "");
	else
		len += snprintf(to.sun_path, sizeof(to.sun_path), "%s/server", folder);
	ret = call(nr, fd, (long)&to, len, 0, 0, 0);
	if (!ret && nr == SYS_bind)
		ret = is_named(fd, &to, len);
	CALL(close, fd);
	return ret;
}

/* In a child, which ends whatever comes of it. */
static long in_child(long (*attack)(void))
{
	int status, pid = fork();

	if (!pid) {
		long ret = attack();

		_exit(ret < 0 ? -ret : 0);
	}
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -EINTR;
}

static long child_unshare(void) { return CALL(unshare, CLONE_NEWUSER); }
static long child_setid(void) { return CALL(chroot, folder); }

/* How many processes could be sent a signal, but for this one. */
static long signals(void)
{
	long pid, count = 0;

	for (pid = 2; pid < 70000; pid++)
		count += pid != getpid() && CALL(tgkill, pid, pid, 0) == 0;
	return count;
}

static long peek(void)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { (void *)0x400000, 1 };
	long ret = CALL(process_vm_readv, victim, &to, 1, &from, 1, 0);

	return ret == -EFAULT ? 0 : ret < 0 ? ret : 0;	/* EFAULT: allowed, and nothing there */
}

static long trace(void)
{
	long ret = CALL(ptrace, PTRACE_SEIZE, victim, 0, 0);

	if (!ret)
		CALL(ptrace, PTRACE_DETACH, victim, 0, 0);
	return ret;
}

static long take_fd(void)
{
	long fd = CALL(pidfd_open, victim, 0);

	return fd < 0 ? fd : done(call(438 /* pidfd_getfd */, fd, 1, 0, 0, 0, 0));
}

static long limit(void)
{
	struct rlimit now;
	long ret = CALL(prlimit64, victim, RLIMIT_CORE, 0, &now);

	return ret ? ret : CALL(prlimit64, victim, RLIMIT_CORE, &now, 0);
}

static long caps(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	CALL(capget, &head, data);
	return data[0].effective | data[1].effective | data[0].permitted ? 0 : -EPERM;
}

static long proc_of_victim(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", victim);
	return done(CALL(open, path, O_RDONLY));
}

/* The host has looked at the arguments: what comes first in its code has let the call through. */
static long passed(long ret, int errno_of_host)
{
	return ret == -errno_of_host ? 0 : ret;
}

/* Known ways out of others' walls, as far as they are calls that a wall may refuse. */
static long escape(const char *what)
{
	struct { unsigned int bytes; int type; } handle = { 0 };
	char text[64];

#define KNOWN(word, expression) if (!strcmp(what, word)) return (expression)
	/* bubblewrap, CVE-2017-5226; flatpak, CVE-2023-28100: input for the terminal's next reader. Here no terminal is there to ask. */
	KNOWN("bubblewrap-tiocsti", passed(CALL(ioctl, 0, TIOCSTI, "x"), ENOTTY));
	KNOWN("flatpak-tioclinux", passed(CALL(ioctl, 0, 0x541c /* TIOCLINUX */, "x"), ENOTTY));
	/* Docker's shocker (2014): files by their handles. */
	KNOWN("docker-handle", passed(CALL(name_to_handle_at, AT_FDCWD, secret, &handle, text, 0), EOVERFLOW));
	/* Containers, CVE-2022-0492: a helper of the host's kernel that others name. */
	KNOWN("core-pattern", done(CALL(open, "/proc/sys/kernel/core_pattern", O_RDONLY)));
	/* Namespaces of others: nsenter. */
	KNOWN("setns", passed(CALL(setns, -1, 0), EBADF));
	/* gVisor, CVE-2018-19333: a shared segment that is removed while another attaches it. */
	KNOWN("gvisor-shmctl", passed(CALL(shmctl, -1, IPC_RMID, 0), EINVAL));
	return 1;
#undef KNOWN
}

static char path[512];

static const char *in_folder(const char *file)
{
	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return path;
}

static long attack(const char *what)
{
	struct timespec times[2] = { { 1, 0 }, { 1, 0 } };
	cpu_set_t cpus;

#define TRY(word, expression) if (!strcmp(what, word)) return (expression)
	TRY("direct", done(CALL(epoll_wait_old, 0)));	/* the warden alone answers this one */
	TRY("read", done(CALL(open, secret, O_RDONLY)));
	TRY("write", done(CALL(open, secret, O_WRONLY)));
	TRY("truncate", CALL(truncate, secret, 6));
	TRY("create", done(CALL(open, in_folder("new"), O_CREAT | O_WRONLY, 0600)));
	TRY("mkdir", CALL(mkdir, in_folder("new-folder"), 0700));
	TRY("symlink", CALL(symlink, "/etc", in_folder("new-link")));
	TRY("rename", CALL(rename, in_folder("spare"), in_folder("spared")));
	TRY("unlink", CALL(unlink, in_folder("spare2")));
	TRY("list", done(CALL(open, folder, O_RDONLY | O_DIRECTORY)));
	TRY("chmod", CALL(chmod, secret, 0644));
	TRY("utimes", CALL(utimensat, AT_FDCWD, secret, times, 0));
	TRY("listxattr", CALL(listxattr, secret, 0, 0));
	TRY("watch", CALL(inotify_add_watch, CALL(inotify_init1, 0), folder, 2) < 0 ? -EPERM : 0);
	TRY("proc", done(CALL(open, "/proc/meminfo", O_RDONLY)));
	TRY("proc-victim", proc_of_victim());
	TRY("ptmx", done(CALL(open, "/dev/ptmx", O_RDWR)));
	TRY("shm", done(CALL(open, "/dev/shm", O_RDONLY | O_DIRECTORY)));
	TRY("inet", done(CALL(socket, AF_INET, SOCK_STREAM, 0)));
	TRY("inet6-udp", done(CALL(socket, AF_INET6, SOCK_DGRAM, 0)));
	TRY("netlink", done(CALL(socket, AF_NETLINK, SOCK_RAW, 0)));
	TRY("unix-datagram", done(CALL(socket, AF_UNIX, SOCK_DGRAM, 0)));
	TRY("unix-connect", unix_name(0, SYS_connect));
	TRY("abstract-connect", unix_name(1, SYS_connect));
	TRY("abstract-bind", unix_name(1, SYS_bind));
	TRY("signal", CALL(kill, victim, SIGCONT));
	TRY("signals", signals());
	TRY("trace", trace());
	TRY("peek", peek());
	TRY("take-fd", take_fd());
	TRY("limit", limit());
	TRY("affinity", (CALL(sched_getaffinity, 0, sizeof(cpus), &cpus), CALL(sched_setaffinity, victim, sizeof(cpus), &cpus)));
	TRY("priority", CALL(setpriority, PRIO_PROCESS, victim, 0));
	TRY("user-namespace", in_child(child_unshare));
	TRY("chroot", in_child(child_setid));
	TRY("key", CALL(add_key, "user", "ring3-attacker", "x", 1, -1 /* KEY_SPEC_THREAD_KEYRING */) < 0 ? -EPERM : 0);
	TRY("shared-memory", CALL(shmget, 0, 4096, 0) < 0 ? -EPERM : 0);
	TRY("io-uring", CALL(io_uring_setup, 1, 0) == -EFAULT ? 0 : -EPERM);
	TRY("lease", CALL(fcntl, CALL(open, "/usr/bin/env", O_RDONLY), F_SETLEASE, F_RDLCK));
	TRY("privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) ? -EPERM : 0);
	TRY("capabilities", caps());
	if (escape(what) <= 0)
		return escape(what);
	return call(atol(what), 0, 0, 0, 0, 0, 0);
}

int main(int argc, char **argv)
{
	int at = 1;

	if (at < argc && !strcmp(argv[at], "--take-over"))
		take_over(), at++;
	if (argc < at + 4)
		return 2;
	secret = argv[at];
	folder = argv[at + 1];
	name = argv[at + 2];
	victim = atol(argv[at + 3]);
	for (at += 4; at < argc; at++)
		printf("%s %ld\n", argv[at], attack(argv[at]));
	return 0;
}
