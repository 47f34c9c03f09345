// SPDX-License-Identifier: GPL-2.0
/*
 * path_call.c - calls that take a path
 */
#include "policy.h"

#include <linux/openat2.h>
#include <linux/stat.h>

/*
 * /proc/self/exe would show the gate. In `buf` what to use in its place; only
 * where the host does not tell the same by itself.
 */
static bool path_is_exe(u64 user_path, char *buf)
{
	if (likely(gate_exe_is_native()))
		return false;
	if (gate_strncpy_in(buf, user_ptr(user_path), PATH_BUF) < 0)
		return false;
	return gate_path_is_self_exe(buf);
}

static long read_exe_link(u64 user, s32 size)
{
	const char *exe = gate_exe_path();
	s32 len = strlen(exe);

	if (size <= 0)
		return -EINVAL;
	if (len > size)
		len = size;
	return gate_copy_out(user_ptr(user), exe, len) ? -EFAULT : len;
}

long do_path(struct gate_regs *r)
{
	struct gate_regs node = *r;
	char buf[PATH_BUF];

	if (path_owner(AT_FDCWD, r->a[0], buf) == PATH_HOST) {
		if (likely(!path_is_exe(r->a[0], buf))) {
			if (r->nr == __NR_readlink)
				return proc_exe_link(r->a[0], r->a[1], r->a[2], gate_host_regs(r));
			return gate_host_regs(r);
		}
		if (r->nr == __NR_readlink)
			return read_exe_link(r->a[1], r->a[2]);
		if (r->nr == __NR_lstat)
			return gate_host_regs(r);
		node.a[0] = (u64)gate_exe_file(buf, sizeof(buf));
		return gate_host_regs(&node);
	}
	node.a[0] = (u64)buf;
	return image_pass(&node);
}

long do_path_at(struct gate_regs *r)
{
	struct gate_regs node = *r;
	char buf[PATH_BUF];

	if (unlikely(reserved_fd(r->a[0])))
		return -EBADF;
	/* utimensat() of a descriptor has no path; statx() and fstatat() may have an empty one. */
	if (!r->a[1])
		return fd_is_node(r->a[0]) ? image_pass(r) : gate_host_regs(r);
	switch (path_owner(r->a[0], r->a[1], buf)) {
	case PATH_NODE_RELATIVE:
		return image_pass(r);
	case PATH_NODE:
		node.a[0] = AT_FDCWD;
		node.a[1] = (u64)buf;
		return image_pass(&node);
	default:
		break;
	}
	if (likely(!path_is_exe(r->a[1], buf))) {
		if (r->nr == __NR_readlinkat)
			return proc_exe_link(r->a[1], r->a[2], r->a[3], gate_host_regs(r));
		return gate_host_regs(r);
	}
	if (r->nr == __NR_readlinkat)
		return read_exe_link(r->a[2], r->a[3]);
	if ((r->nr == __NR_newfstatat && (r->a[3] & AT_SYMLINK_NOFOLLOW)) ||
	    (r->nr == __NR_statx && (r->a[2] & AT_SYMLINK_NOFOLLOW)))
		return gate_host_regs(r);
	node.a[0] = AT_FDCWD;
	node.a[1] = (u64)gate_exe_file(buf, sizeof(buf));
	return gate_host_regs(&node);
}

/* A file of the host; what is not a program's own /proc/self/exe may be another's. */
static long open_host(struct gate_regs *r, u64 path)
{
	struct gate_regs host = *r;
	char exe[PROC_EXE_BYTES];

	if (likely(!proc_exe_path(path, exe)))
		return gate_host_regs(r);
	host.a[r->nr == __NR_openat] = (u64)exe;
	return gate_host_regs(&host);
}

static long open_common(struct gate_regs *r, s32 dirfd, u64 path, u64 flags, u64 mode)
{
	struct gate_regs host = *r;
	bool cloexec = flags & O_CLOEXEC;
	char buf[PATH_BUF];

	switch (path_owner(dirfd, path, buf)) {
	case PATH_NODE_RELATIVE:
		return fd_create(cloexec, __NR_openat, dirfd, path, flags, mode);
	case PATH_NODE:
		return fd_create(cloexec, __NR_openat, AT_FDCWD, (u64)buf, flags, mode);
	default:
		break;
	}
	if (unlikely(flags & O_NOFOLLOW))
		return gate_host_regs(r);
	if (likely(!path_is_exe(path, buf)))
		return open_host(r, path);
	host.a[r->nr == __NR_openat] = (u64)gate_exe_file(buf, sizeof(buf));
	return gate_host_regs(&host);
}

long do_open(struct gate_regs *r)
{
	if (r->nr == __NR_creat)
		return open_common(r, AT_FDCWD, r->a[0], O_CREAT | O_WRONLY | O_TRUNC, r->a[1]);
	return open_common(r, AT_FDCWD, r->a[0], (u32)r->a[1], r->a[2]);
}

long do_openat(struct gate_regs *r)
{
	return open_common(r, r->a[0], r->a[1], (u32)r->a[2], r->a[3]);
}

#define WITHIN	(RESOLVE_BENEATH | RESOLVE_IN_ROOT | RESOLVE_NO_XDEV)

long do_openat2(struct gate_regs *r)
{
	struct open_how how;
	char buf[PATH_BUF], first;
	u64 dirfd = r->a[0], path = r->a[1], how_at = r->a[2];

	switch (path_owner(dirfd, path, buf)) {
	case PATH_HOST:
		return gate_host_regs(r);
	case PATH_NODE:
		dirfd = AT_FDCWD;
		path = (u64)buf;
		break;
	case PATH_NODE_RELATIVE:
		break;
	}
	if (r->a[3] < sizeof(how))
		return -EINVAL;
	if (gate_copy_in(&how, user_ptr(r->a[2]), sizeof(how)))
		return -EFAULT;
	/*
	 * What is the node's and lies below that directory of the host's is beneath it, and on no other
	 * file system than on Linux.
	 */
	if (dirfd != r->a[0] && r->a[3] == sizeof(how) && (how.resolve & WITHIN) &&
	    !gate_copy_in(&first, user_ptr(r->a[1]), 1) && first != '/') {
		how.resolve &= ~WITHIN;
		how_at = (u64)&how;
	}
	return fd_create(how.flags & O_CLOEXEC, __NR_openat2, dirfd, path, how_at, r->a[3]);
}

long do_chdir(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (!ret)
		path_cwd_changed();
	return ret;
}

/*
 * The working directory is the host's. Its /proc and /sys have the same
 * directories, and names below it are looked up on the node (see above).
 */
long do_fchdir(struct gate_regs *r)
{
	char path[40], dir[PATH_BUF];
	struct stat st;
	long ret;

	if (!fd_is_node(r->a[0])) {
		ret = gate_host_regs(r);
	} else {
		ret = image_call2(__NR_fstat, (u32)r->a[0], &st);
		if (ret)
			return ret;
		if ((st.st_mode & S_IFMT) != S_IFDIR)
			return -ENOTDIR;
		gate_format(path, sizeof(path), "/proc/self/fd/%d", (s32)r->a[0]);
		ret = image_call3(__NR_readlink, path, dir, sizeof(dir) - 1);
		if (ret < 0)
			return ret;
		dir[ret] = 0;
		ret = host_syscall1(__NR_chdir, (long)dir);
	}
	if (!ret)
		path_cwd_changed();
	return ret;
}
