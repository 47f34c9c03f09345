// SPDX-License-Identifier: GPL-2.0
/*
 * fds.c - makes node descriptors at given numbers, those of their placeholders on the host
 *
 * A descriptor has the same number in both tables. The gate reserves the number in the host's table first. AT then
 * makes the node's call use it: alloc_fd() starts its search at next_fd, where the number is free, and neither
 * accept() nor open() sleeps before that search. If a call did sleep and got another number, its file is moved.
 *
 * With several vCPUs, another thread may start its search in between. So only one thread at a time makes a
 * descriptor (at_lock). accept() sleeps, so it gets its number only when it has the file.
 */
#include <linux/errno.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/pipe_fs_i.h>
#include <linux/socket.h>
#include <linux/syscalls.h>
#include <asm/ring3.h>
#include <asm/syscall.h>
#include <asm/unistd.h>
#include <net/sock.h>

/* Moves a node descriptor to the number of its placeholder on the host. */
long ring3_sys_fd_move(int from, int to, int cloexec)
{
	struct file *file;
	int ret;

	if (to < 0 || to >= RING3_FDS_MAX)
		return -EMFILE;
	file = fget_raw(from);
	if (!file)
		return -EBADF;
	if (from != to) {
		ret = replace_fd(to, file, cloexec ? O_CLOEXEC : 0);
		if (ret >= 0)
			close_fd(from);
	} else {
		set_close_on_exec(from, cloexec);
		ret = to;
	}
	fput(file);
	return ret < 0 ? ret : to;
}

static long call_at(int at, long nr, long a0, long a1, long a2, long a3)
{
	struct files_struct *files = current->files;
	long fd;

	spin_lock(&files->file_lock);
	files->next_fd = at;
	spin_unlock(&files->file_lock);
	fd = sys_call_table[nr](a0, a1, a2, a3, 0, 0);
	if (fd < 0 || fd == at)
		return fd;
	return ring3_sys_fd_move(fd, at, get_close_on_exec(fd));
}

static DEFINE_MUTEX(at_lock);

static long accept_at(int at, int from, struct sockaddr __user *addr, int __user *len, int flags)
{
	struct proto_accept_arg arg = { };
	struct file *file;
	struct fd f;
	int ret;

	if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	f = fdget(from);
	if (!fd_file(f))
		return -EBADF;
	file = do_accept(fd_file(f), &arg, addr, len, flags);
	fdput(f);
	if (IS_ERR(file))
		return PTR_ERR(file);
	mutex_lock(&at_lock);
	ret = replace_fd(at, file, flags & SOCK_CLOEXEC ? O_CLOEXEC : 0);
	mutex_unlock(&at_lock);
	fput(file);
	return ret < 0 ? ret : at;
}

long ring3_sys_at(int at, long nr, long a0, long a1, long a2, long a3)
{
	long fd;

	if (at < 0 || at >= RING3_FDS_MAX)
		return -EMFILE;
	if (nr < 0 || nr >= NR_syscalls)
		return -ENOSYS;
	if (!IS_ENABLED(CONFIG_SMP))
		return call_at(at, nr, a0, a1, a2, a3);
	if (nr == __NR_accept || nr == __NR_accept4)
		return accept_at(at, a0, (void __user *)a1, (void __user *)a2,
				 nr == __NR_accept4 ? a3 : 0);
	mutex_lock(&at_lock);
	fd = call_at(at, nr, a0, a1, a2, a3);
	mutex_unlock(&at_lock);
	return fd;
}

/* PIPE(first, second, flags): pipe2() at two numbers that the gate has reserved. */
long ring3_sys_pipe(int first, int second, int flags)
{
	struct file *files[2];
	int ret;

	if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT))
		return -EINVAL;
	ret = create_pipe_files(files, flags);
	if (ret)
		return ret;
	files[0]->f_mode |= FMODE_NOWAIT;	/* as pipe2() */
	files[1]->f_mode |= FMODE_NOWAIT;
	ret = replace_fd(first, files[0], flags & O_CLOEXEC);
	if (ret >= 0) {
		ret = replace_fd(second, files[1], flags & O_CLOEXEC);
		if (ret < 0)
			close_fd(first);
	}
	fput(files[0]);
	fput(files[1]);
	return ret < 0 ? ret : 0;
}
