// SPDX-License-Identifier: GPL-2.0
/*
 * signalfd.c - signalfds show each thread something else
 *
 * A signalfd shows a polling thread the signals that are pending for the process and for that thread. So the feeder
 * (feed.c) learns of signals to the process, but not of a signal to one thread. A thread that waits for a signalfd
 * in the node, together with node descriptors, has to check it from time to time.
 *
 * In an epoll with members on both sides that is not enough: when the feeder looks at the twin and the signalfd has
 * nothing for the feeder, the host removes it from the twin's ready list, and a thread that looks later does not
 * find it.
 *
 * They are recognised by their name in /proc. Only programs that have made one pay for that. A program that has
 * received one over exec or in a message, and makes none itself, treats it like any other descriptor.
 */
#include "policy.h"

#include <linux/stat.h>

static bool made;		/* this process has made one, or the process that it was forked from */

long do_signalfd(struct gate_regs *r)
{
	u32 fd = r->a[0];

	if (fd_is_node(fd))
		return image_pass(r);
	if (unlikely(reserved_fd(fd)))
		return -EBADF;
	WRITE_ONCE(made, true);
	return gate_host_regs(r);
}

/* This descriptor of the host is a signalfd, or may be one. */
bool is_signalfd(u32 fd)
{
	static const char name[] = "anon_inode:[signalfd]";
	char text[sizeof(name) + 1];
	struct stat st;
	long n;

	if (likely(!READ_ONCE(made)))
		return false;
	/* Anonymous inodes have no file type. */
	if (host_syscall2(__NR_fstat, fd, (long)&st) || (st.st_mode & S_IFMT))
		return false;
	n = fd_link(fd, text, sizeof(text));
	/* Without the process's own /proc there is no way to tell. */
	return n < 0 || !strcmp(text, name);
}
