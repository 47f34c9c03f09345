// SPDX-License-Identifier: GPL-2.0
/*
 * proxy.c - stands for a descriptor of the host in a node's epoll, poll and select sets
 *
 * The file has the number of the host's descriptor. Its readiness is what the gate reported last (PROXY_SET, which
 * also raises an edge) and has not taken back yet (PROXY_CLEAR). All other operations on it fail: the gate makes
 * them on the host.
 */
#include <linux/anon_inodes.h>
#include <linux/errno.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <asm/ring3.h>

struct proxy {
	wait_queue_head_t wait;
	u32 mask;
};

static __poll_t proxy_poll(struct file *file, poll_table *table)
{
	struct proxy *p = file->private_data;

	poll_wait(file, &p->wait, table);
	return (__force __poll_t)READ_ONCE(p->mask);
}

static int proxy_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

static const struct file_operations proxy_fops = {
	.poll		= proxy_poll,
	.release	= proxy_release,
	.llseek		= noop_llseek,
};

/* Puts a file at a number that must be free; fd tables grow by replace_fd(). */
static int install_at(int fd, struct file *file, int flags)
{
	int ret = replace_fd(fd, file, flags);

	fput(file);
	return ret;
}

long ring3_sys_proxy(int fd)
{
	struct fd f = fdget(fd);
	struct file *file;
	struct proxy *p;
	int ret;

	if (fd_file(f)) {
		ret = fd_file(f)->f_op == &proxy_fops ? 0 : -EBUSY;
		fdput(f);
		return ret;
	}
	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	init_waitqueue_head(&p->wait);
	file = anon_inode_getfile("[ring3-proxy]", &proxy_fops, p, O_RDWR);
	if (IS_ERR(file)) {
		kfree(p);
		return PTR_ERR(file);
	}
	return install_at(fd, file, O_CLOEXEC) < 0 ? -EMFILE : 0;
}

static long proxy_change(int fd, u32 mask, bool edge)
{
	struct fd f = fdget(fd);
	struct proxy *p;

	if (!fd_file(f))
		return -EBADF;
	if (fd_file(f)->f_op != &proxy_fops) {
		fdput(f);
		return -EINVAL;
	}
	p = fd_file(f)->private_data;
	WRITE_ONCE(p->mask, mask);
	if (edge)
		wake_up_poll(&p->wait, (__force __poll_t)mask);
	fdput(f);
	return 0;
}

long ring3_sys_proxy_set(int fd, u32 mask)
{
	return proxy_change(fd, mask, true);
}

long ring3_sys_proxy_clear(int fd)
{
	return proxy_change(fd, 0, false);
}
