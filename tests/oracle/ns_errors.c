// SPDX-License-Identifier: GPL-2.0
/* unshare() and setns() with unknown flags and wrong descriptors: EINVAL or EBADF, whatever the other flags are. */
#include "cred.h"
#include <linux/sched.h>
#include <sched.h>

/* A pidfd whose process is no more. */
static void gone(void)
{
	pid_t pid = must(fork());
	int fd;

	if (!pid)
		_exit(0);
	fd = must(syscall(SYS_pidfd_open, pid, 0));
	must(waitpid(pid, NULL, 0));
	T(setns(fd, CLONE_NEWNET));
	T(setns(fd, CLONE_NEWPID));
	T(setns(fd, 0));
}

/* A pidfd whose process lives: unknown flags, and a process that its child may not look at. */
static void alive(void)
{
	int fd = must(syscall(SYS_pidfd_open, getpid(), 0));
	uint64_t caps = caps_permitted() & ~CAP(SYS_PTRACE);
	pid_t pid;

	T(setns(fd, -1));
	T(setns(fd, CLONE_VM));
	T(setns(fd, CLONE_NEWNET | CLONE_VM));
	T(setns(fd, CLONE_NEWPID | CLONE_FS));
	T(setns(fd, 0));
	must(prctl(PR_SET_DUMPABLE, 0));
	pid = must(fork());
	if (!pid) {
		must(caps_set(caps, caps, 0));
		T(setns(fd, CLONE_NEWUTS));
		T(setns(fd, CLONE_NEWNET));
		T(setns(fd, CLONE_NEWNET | CLONE_NEWUTS));
		_exit(0);
	}
	must(waitpid(pid, NULL, 0));
	close(fd);
}

int main(void)
{
	int sock = must(socket(AF_INET, SOCK_STREAM, 0));
	int file = must(open("/dev/null", O_RDONLY)), uts = must(open("/proc/self/ns/uts", O_RDONLY));
	int net = must(open("/proc/self/ns/net", O_RDONLY));

	T(unshare(-1));
	T(unshare(CLONE_NEWPID | CLONE_CHILD_SETTID));
	T(unshare(1 << 2 | CLONE_FILES));
	T(unshare(0));
	T(setns(-1, CLONE_NEWPID));
	T(setns(sock, 0));
	T(setns(sock, CLONE_NEWNET));
	T(setns(file, 0));
	T(setns(file, CLONE_NEWNET));
	T(setns(file, CLONE_NEWPID));
	T(setns(uts, CLONE_NEWPID));
	T(setns(uts, CLONE_NEWNET));
	T(setns(uts, -1));
	T(setns(net, CLONE_NEWPID));
	T(setns(net, CLONE_NEWUTS));
	T(setns(net, -1));
	gone();
	alive();
	return 0;
}
