// SPDX-License-Identifier: GPL-2.0
/*
 * park.c - descriptors in transit from one process of the node to another
 *
 * The host's AF_UNIX sockets carry them as tickets (gate/fd/pass.c): sockets of the host whose cookie is the key
 * here. A file is parked before its message is sent, and taken when the message is received. Taking it drops the
 * reference at once, not only when the host reports that the ticket is gone: a program that closes a socket after
 * it has passed it expects the last close to end the connection. After that the key maps to TAKEN, for a process
 * that presents the same ticket again, until the keeper forgets the key.
 */
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include "park.h"
#include "../vcpu/vcpu.h"

#define TAKEN	xa_mk_value(0)

/* By key: a file, or TAKEN. */
static DEFINE_XARRAY(parked);

long ring3_sys_park(int fd, u64 key)
{
	struct file *file = fget_raw(fd);
	int ret;

	if (!file)
		return -EBADF;
	ret = xa_insert(&parked, key, file, GFP_KERNEL);
	if (ret)
		fput(file);
	return ret == -EBUSY ? -EEXIST : ret;
}

static long forget(u64 key)
{
	void *entry = xa_erase(&parked, key);

	if (!entry)
		return -ENOENT;
	if (entry != TAKEN)
		fput(entry);
	return 0;
}

long ring3_sys_unpark(u64 key, int to, unsigned int flags)
{
	struct file *file;
	void *entry;
	int ret;

	if (to == -1)
		return forget(key);
	xa_lock(&parked);
	entry = xa_load(&parked, key);
	file = entry && entry != TAKEN ? get_file(entry) : NULL;
	xa_unlock(&parked);
	if (!file)
		return entry ? -ESTALE : -ENOENT;
	if (to < 0 || to >= RING3_FDS_MAX) {
		fput(file);
		return -EMFILE;
	}
	ret = replace_fd(to, file, flags & RING3_UNPARK_CLOEXEC ? O_CLOEXEC : 0);
	if (ret >= 0 && !(flags & RING3_UNPARK_KEEP) &&
	    xa_cmpxchg(&parked, key, file, TAKEN, GFP_KERNEL) == file)
		fput(file);
	fput(file);
	return ret;
}

/* As pidfd_getfd(): the thread with this number, or any remaining thread of the process. */
static struct ring3_thread *find_thread(int pid)
{
	struct ring3_thread *tb, *any = NULL;

	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		struct ring3_proc *proc = (struct ring3_proc *)tb->proc;

		if (!tb->task || (r3t_flags(tb) & R3_F_GONE) || !proc)
			continue;
		if (tb->tid == pid)
			return tb;
		if (proc->pid == pid)
			any = tb;
	}
	return any;
}

long ring3_sys_grab(int pid, int fd, int to)
{
	const struct ring3_fdmap *map;
	struct file *file = NULL;
	struct ring3_thread *tb;
	int ret;

	mutex_lock(&ring3_blocks);
	tb = find_thread(pid);
	map = tb ? (const struct ring3_fdmap *)tb->fdmap : NULL;
	if (map && fd >= 0 && fd < RING3_FDS_MAX && (map->node[fd / 64] >> (fd % 64) & 1))
		file = fget_task((struct task_struct *)tb->task, fd);
	mutex_unlock(&ring3_blocks);
	if (!tb)
		return -ESRCH;
	if (to < 0 || to >= RING3_FDS_MAX) {
		if (file)
			fput(file);
		return -EMFILE;
	}
	if (!file)
		return -EBADF;
	ret = replace_fd(to, file, O_CLOEXEC);
	fput(file);
	return ret;
}
