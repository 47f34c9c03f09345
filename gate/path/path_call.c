// SPDX-License-Identifier: GPL-2.0
/*
 * path_call.c - calls that take a path
 */
#include "policy.h"

#include <linux/openat2.h>
#include <linux/stat.h>

/*
 * readlink() of a path that the host knows by another name. /proc/self/exe is read so often that the gate knows it.
 */
static long read_link(struct gate_regs *r, u32 at)
{
	s32 dirfd = at ? (s32)r->a[0] : AT_FDCWD, size = r->a[at + 2];
	char path[32];
	long ret;

	if (size > 0 && gate_strncpy_in(path, user_ptr(r->a[at]), sizeof(path)) > 0 && gate_path_is_self_exe(path))
		return proc_exe_give(r->a[at + 1], size, gate_exe_path());
	ret = gate_host_regs(r);
	return proc_exe_link(dirfd, r->a[at], r->a[at + 1], size, ret);
}

long do_path(struct gate_regs *r)
{
	struct gate_regs node = *r;
	char buf[PATH_BUF];
	long ret;

	if (path_owner(AT_FDCWD, r->a[0], buf) == PATH_HOST) {
		if (r->nr == __NR_readlink)
			return read_link(r, 0);
		return proc_exe_call(r, r->a[0], &ret) ? ret : gate_host_regs(r);
	}
	node.a[0] = (u64)buf;
	return image_pass(&node);
}

long do_path_at(struct gate_regs *r)
{
	struct gate_regs node = *r;
	char buf[PATH_BUF];
	long ret;

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
	if (r->nr == __NR_readlinkat)
		return read_link(r, 1);
	return proc_exe_call(r, r->a[1], &ret) ? ret : gate_host_regs(r);
}

/* The owner of the link's own path serves it. Nobody looks at the path that the link says. */
long do_symlink(struct gate_regs *r)
{
	u32 at = r->nr == __NR_symlinkat;
	s32 dirfd = at ? (s32)r->a[1] : AT_FDCWD;
	struct gate_regs node = *r;
	char buf[PATH_BUF];

	if (unlikely(at && reserved_fd(dirfd)))
		return -EBADF;
	switch (path_owner(dirfd, r->a[at + 1], buf)) {
	case PATH_NODE_RELATIVE:
		return image_pass(r);
	case PATH_NODE:
		node.nr = __NR_symlinkat;
		node.a[1] = AT_FDCWD;
		node.a[2] = (u64)buf;
		return image_pass(&node);
	default:
		return gate_host_regs(r);
	}
}

/* In a sandbox the host's /proc can't be listed. The node's has the processes of the sandbox. */
static bool is_proc_of_sandbox(u64 user_path, long ret)
{
	char path[8];

	if (likely(ret != -EACCES) || gate_strncpy_in(path, user_ptr(user_path), sizeof(path)) <= 0)
		return false;
	return (!strcmp(path, "/proc") || !strcmp(path, "/proc/")) && own_confined();
}

static long open_common(struct gate_regs *r, s32 dirfd, u64 path, u64 flags, u64 mode)
{
	bool cloexec = flags & O_CLOEXEC;
	char buf[PATH_BUF];
	long ret;

	switch (path_owner(dirfd, path, buf)) {
	case PATH_NODE_RELATIVE:
		return fd_create(cloexec, __NR_openat, dirfd, path, flags, mode);
	case PATH_NODE:
		return fd_create(cloexec, __NR_openat, AT_FDCWD, (u64)buf, flags, mode);
	default:
		break;
	}
	if (unlikely(proc_exe_call(r, path, &ret)))
		return ret;
	ret = gate_host_regs(r);
	if (unlikely(is_proc_of_sandbox(path, ret)))
		return fd_create(cloexec, __NR_openat, AT_FDCWD, (u64)"/proc", flags, mode);
	return ret < 0 ? own_opened(path, flags, ret) : machine_opened(dirfd, path, flags, ret);
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
	enum path_owner owner = path_owner(dirfd, path, buf);
	long ret;

	/* In a directory of the node's as the root, a path that begins with a slash is below that. */
	if (fd_is_node(dirfd) && r->a[3] >= sizeof(how) && !gate_copy_in(&how, user_ptr(how_at), sizeof(how)) &&
	    (how.resolve & RESOLVE_IN_ROOT))
		owner = PATH_NODE_RELATIVE;
	switch (owner) {
	case PATH_HOST:
		if (unlikely(proc_exe_call(r, path, &ret)))
			return ret;
		ret = gate_host_regs(r);
		return ret < 0 || gate_copy_in(&how, user_ptr(how_at), sizeof(how)) ? ret :
			machine_opened(dirfd, path, how.flags, ret);
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
	 * A path of the node below a directory of the host is beneath that directory, and crosses no file system
	 * boundary that it would not cross on Linux.
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
 * The working directory is a directory of the host. Its /proc and /sys have the same directories as the node's, and
 * names below them are looked up on the node (see path.c).
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
