/* SPDX-License-Identifier: GPL-2.0 */
/* scm.h - passing descriptors over AF_UNIX */
#ifndef SCM_H
#define SCM_H

#include "oracle.h"

#define MOST 253	/* SCM_MAX_FD */

struct parcel {
	struct msghdr header;
	struct iovec iov;
	char data[64];
	char control[CMSG_SPACE((MOST + 7) * sizeof(int))] __attribute__((aligned(8)));
	int fd[MOST + 7];	/* received */
	int count;
};

/* A message of `len` bytes that passes count descriptors. */
static struct msghdr *packed(struct parcel *p, int len, const int *fds, int count)
{
	struct cmsghdr *c;

	memset(p, 0, sizeof(*p));
	memset(p->data, 'd', sizeof(p->data));
	p->iov = (struct iovec){ p->data, len };
	p->header = (struct msghdr){ .msg_iov = &p->iov, .msg_iovlen = 1,
				     .msg_control = p->control,
				     .msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	c = CMSG_FIRSTHDR(&p->header);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return &p->header;
}

static ssize_t pass(int over, const int *fds, int count, int flags)
{
	struct parcel p;

	return sendmsg(over, packed(&p, 1, fds, count), flags);
}

static ssize_t pass_one(int over, int fd)
{
	return pass(over, &fd, 1, 0);
}

static struct msghdr *unpacked(struct parcel *p, size_t room)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ p->data, sizeof(p->data) };
	p->header = (struct msghdr){ .msg_iov = &p->iov, .msg_iovlen = 1,
				     .msg_control = p->control, .msg_controllen = room };
	return &p->header;
}

/* What came with a message that recvmsg() has filled in. */
static void look_into(struct parcel *p)
{
	struct cmsghdr *c;

	p->count = 0;
	for (c = CMSG_FIRSTHDR(&p->header); c; c = CMSG_NXTHDR(&p->header, c)) {
		int n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(p->fd + p->count, CMSG_DATA(c), n * sizeof(int));
		p->count += n;
	}
}

/* Receives with that much room for control data. */
static ssize_t take(int over, struct parcel *p, size_t room, int flags)
{
	ssize_t n = recvmsg(over, unpacked(p, room), flags);

	if (n >= 0)
		look_into(p);
	return n;
}

/* The one descriptor of the next message, or -1. */
static int take_one(int over, int flags)
{
	struct parcel p;

	if (take(over, &p, sizeof(p.control), flags) < 0 || p.count != 1)
		return -1;
	return p.fd[0];
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

/* What sort of file a descriptor is of. */
static const char *kind(int fd)
{
	struct stat st;
	int domain = int_option(fd, SOL_SOCKET, SO_DOMAIN);
	static char text[4][48];
	static unsigned int turn;
	char *out = text[turn++ % 4];

	if (fstat(fd, &st))
		return ename(errno);
	if (!S_ISSOCK(st.st_mode))
		return S_ISFIFO(st.st_mode) ? "pipe" : S_ISREG(st.st_mode) ? "file" : "other";
	snprintf(out, 48, "%s %s%s", domain == AF_INET ? "inet" : domain == AF_INET6 ? "inet6" :
		 domain == AF_UNIX ? "unix" : domain == AF_NETLINK ? "netlink" : "?",
		 int_option(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM ? "stream" : "other",
		 int_option(fd, SOL_SOCKET, SO_ACCEPTCONN) == 1 ? " listening" : "");
	return out;
}

/* Is this connection's other end gone within five seconds? */
static const char *end_of(int fd)
{
	char b[8];
	ssize_t n;

	if (!wait_for(fd, POLLIN))
		return "still there";
	n = recv(fd, b, sizeof(b), MSG_DONTWAIT);
	return n < 0 ? ename(errno) : n ? "data" : "end";
}

#endif /* SCM_H */
