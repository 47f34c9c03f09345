// SPDX-License-Identifier: GPL-2.0
/*
 * signalfd.c - descriptors that do not look the same to all threads
 *
 * A signalfd shows a thread that polls it what is pending for the process, and for that thread. So the feeder
 * (feed.c) hears of signals to the process, but never of one that was sent to a thread alone: a thread that waits for
 * a signalfd among the node's descriptors has to look from time to time as well.
 *
 * In an epoll of both kinds that is not enough: when the feeder looks into the twin, and nothing is there for
 * it, the host takes the signalfd off the twin's list of what is ready, and a thread that looks later finds
 * none.
 *
 * They are told by their name in /proc, for which nobody pays but programs that have made one. One that came
 * over exec or in a message, to a program that makes none itself, is taken for any other descriptor.
 */
#include "policy.h"

#include <linux/stat.h>

static bool made;		/* this process has, or one that it was forked from */

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
	/* Anonymous inodes have no type. */
	if (host_syscall2(__NR_fstat, fd, (long)&st) || (st.st_mode & S_IFMT))
		return false;
	n = fd_link(fd, text, sizeof(text));
	/* Without /proc, or where it is somebody else's, we can't tell. */
	return n < 0 || !strcmp(text, name);
}
