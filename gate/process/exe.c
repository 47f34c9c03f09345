// SPDX-License-Identifier: GPL-2.0
/*
 * exe.c - the file of the running program: /proc/self/exe
 */
#include "internal.h"
#include <linux/openat2.h>

char gate_exe[PROC_EXE_BYTES] GATE_TABLE;

/*
 * Would the host show the program under the path that it was started by? It does if the path is absolute, has no
 * redundant components, follows no symbolic link, and still leads to the file.
 */
static bool asked_is_exe(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS };
	struct stat there, here;
	const char *p;
	bool same;
	long fd;

	if (gate.asked[0] != '/' || strlen(gate.asked) >= sizeof(gate_exe))
		return false;
	for (p = gate.asked; *p; p++)
		if (p[0] == '/' && (p[1] == '/' || p[1] == '.'))
			return false;
	fd = host_syscall4(__NR_openat2, AT_FDCWD, (long)gate.asked, (long)&how, sizeof(how));
	if (fd < 0)
		return false;
	same = !host_syscall2(__NR_fstat, fd, (long)&there) &&
	       !host_syscall2(__NR_fstat, gate_fd(GATE_FD_PROGRAM), (long)&here) &&
	       there.st_dev == here.st_dev && there.st_ino == here.st_ino;
	host_syscall1(__NR_close, fd);
	return same;
}

/*
 * The absolute path of the running program, for /proc/self/exe. To ask the host takes 20 to 50 us in a new process,
 * since its entries in /proc have to be made first, and few programs read the link. So the file stays open at
 * GATE_FD_PROGRAM, and the host is asked at the first use. Statically linked programs all ask at their start,
 * mostly without needing /proc: asked_is_exe().
 */
const char *gate_exe_path(void)
{
	if (gate.exe_known)
		return gate_exe;
	if (asked_is_exe() || fd_link(gate_fd(GATE_FD_PROGRAM), gate_exe, sizeof(gate_exe)) <= 0)	/* no /proc here */
		gate_format(gate_exe, sizeof(gate_exe), "%s", gate.asked);
	gate.exe_known = true;
	return gate_exe;
}

/*
 * A path by which the host finds the running program's file, for calls that follow links: the file may have been
 * renamed or removed, and its old name may lead to another file.
 */
const char *gate_exe_file(char *buf, size_t size)
{
	struct stat st;

	/* Another process may share our descriptors (CLONE_FILES), and have put its own program there. */
	if (host_syscall2(__NR_fstat, gate_fd(GATE_FD_PROGRAM), (long)&st) ||
	    st.st_dev != gate.exe_dev || st.st_ino != gate.exe_ino)
		return gate_exe_path();
	gate_format(buf, size, "/proc/self/fd/%d", gate_fd(GATE_FD_PROGRAM));
	return buf;
}

/* The program's file is at an ordinary number that is about to be closed. */
void gate_exe_note(int fd)
{
	if (fd_link(fd, gate_exe, sizeof(gate_exe)) <= 0)
		gate_format(gate_exe, sizeof(gate_exe), "%s", gate.asked);
	gate.exe_known = true;
}

bool gate_path_is_self_exe(const char *path)
{
	struct proc_path at;

	return proc_path(path, &at) && !strcmp(at.rest, "exe") && at.pid == host_syscall0(__NR_getpid) &&
	       (!at.tid || at.tid == host_syscall0(__NR_gettid));
}
