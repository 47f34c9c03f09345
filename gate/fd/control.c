// SPDX-License-Identifier: GPL-2.0
/*
 * control.c - fcntl() and ioctl()
 */
#include "fd/numbers.h"

#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <linux/stat.h>
#include <linux/userfaultfd.h>

/* linux/sockios.h: requests about routes and interfaces, then the drivers' own. */
#define SIOC_FIRST	SIOCADDRT
#define SIOC_LAST	(SIOCPROTOPRIVATE - 1)
#define SIOC_DRIVER	SIOCDEVPRIVATE
#define SIOC_DRIVER_END	(SIOCDEVPRIVATE + 15)

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY	1027
#endif

/*
 * A sandbox's filter refuses SIGIO and owners of host descriptors, since an owner may be any process. nginx ends its start where its
 * workers' unix sockets have no owner; it waits for them by epoll anyway. So such a socket's program may name itself, and gets no signal.
 */
static long without_sigio(u32 fd, long ret)
{
	s32 family, len = sizeof(family);

	if (likely(ret != -ENOSYS) ||
	    host_syscall5(__NR_getsockopt, fd, SOL_SOCKET, SO_DOMAIN, (long)&family, (long)&len))
		return ret;
	return family == AF_UNIX ? 0 : ret;
}

long do_fcntl(struct gate_regs *r)
{
	u32 fd = r->a[0], cmd = r->a[1];
	long ret;

	if (!fd_is_node(fd)) {
		if (unlikely(reserved_fd(fd)))
			return -EBADF;
		ret = gate_host_regs(r);
		return cmd == F_SETOWN && (s32)r->a[2] == host_syscall0(__NR_getpid) ? without_sigio(fd, ret) : ret;
	}
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		fd_making_begins();
		ret = host_syscall3(__NR_fcntl, fd, cmd, r->a[2]);
		return dup_follow(fd, ret, cmd == F_DUPFD_CLOEXEC);
	case F_SETFD:
		ret = image_pass(r);
		if (!ret)
			host_syscall3(__NR_fcntl, fd, cmd, r->a[2]);
		return ret;
	case F_DUPFD_QUERY:
		/*
		 * The node does not know the host's descriptors. Both are open, and they are surely different
		 * files.
		 */
		if (!fd_is_node(r->a[2]) && !reserved_fd(r->a[2]) &&
		    host_syscall3(__NR_fcntl, r->a[2], F_GETFD, 0) >= 0)
			return 0;
		return image_pass(r);
	case F_SETOWN:
	case F_GETOWN:
	case F_SETOWN_EX:
	case F_GETOWN_EX:
		return owner_fcntl(r);
	default:
		return image_pass(r);
	}
}

/*
 * A program may ask about interfaces through any socket: libc's if_nametoindex() uses an AF_UNIX one. The answer
 * has to be the node's.
 */
static bool ioctl_about_network(u32 fd, u32 cmd)
{
	struct stat st;

	if (likely(cmd < SIOC_FIRST || cmd > SIOC_DRIVER_END ||
		   (cmd > SIOC_LAST && cmd < SIOC_DRIVER)))
		return false;
	return !host_syscall2(__NR_fstat, fd, (long)&st) && (st.st_mode & S_IFMT) == S_IFSOCK;
}

static long ioctl_by_other_socket(struct gate_regs *r)
{
	struct gate_regs again = *r;
	long fd, ret;

	fd = fd_create(true, __NR_socket, 2 /* AF_INET */, 2 /* SOCK_DGRAM */ | O_CLOEXEC, 0, 0);
	if (fd < 0)
		return fd;
	again.a[0] = fd;
	ret = image_pass(&again);
	fd_drop(fd);
	return ret;
}

long do_ioctl(struct gate_regs *r)
{
	u32 fd = r->a[0], cmd = r->a[1];
	long ret;

	if (!fd_is_node(fd)) {
		if (unlikely(reserved_fd(fd)))
			return -EBADF;
		ret = ioctl_about_network(fd, cmd) ? ioctl_by_other_socket(r) : gate_host_regs(r);
		if (unlikely(cmd == USERFAULTFD_IOC_NEW) && ret >= 0)
			map_is_slow();
		return cmd == FIOASYNC ? without_sigio(fd, ret) : ret;
	}
	switch (cmd) {
	case FIOCLEX:
	case FIONCLEX:
		ret = image_pass(r);
		if (!ret)
			host_syscall3(__NR_fcntl, fd, F_SETFD, cmd == FIOCLEX ? FD_CLOEXEC : 0);
		return ret;
	case FIOSETOWN:
	case SIOCSPGRP:
	case FIOGETOWN:
	case SIOCGPGRP:
		return owner_ioctl(r);
	case SIOCGSKNS:
	case NS_GET_USERNS:
		return fd_create(true, __NR_ioctl, fd, cmd, r->a[2], 0);
	default:
		return image_pass(r);
	}
}
