// SPDX-License-Identifier: GPL-2.0
/*
 * same.c SEED STEPS - random calls on descriptors of all kinds, and what each returns
 *
 * On the host and on a node the same seed has to print the same. Nothing waits for longer than a few milliseconds. What
 * two kernels may do differently is left out: buffers stay far from full, so that windows, the sizes of parts and a
 * pipe's pages make no difference; no unix socket is sent over a unix socket, whose cycles the host collects at a time of
 * its own; no file is sent over UDP at an odd offset, which Linux 6.18 loses (its checksum is wrong).
 *
 * A step may fork: the child makes the next calls with the same descriptors and ends. Or execute: the program goes on in a
 * fresh one, with the same descriptors.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PLACES		24
#define BASE		100	/* number of the first place's descriptor */
#define FILE_BYTES	30000
#define CHILD_STEPS	15
#define SETTLE_US	300	/* for what one call makes another socket get */

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define ONE_OF(...)	((const long[]){ __VA_ARGS__ }[below(COUNT(((const long[]){ __VA_ARGS__ })))])

enum kind { NONE, TCP, TCP6, UDP, UNIX, UNIX_DGRAM, PIPE_IN, PIPE_OUT, EVENT, EPOLL, REGULAR };

static const char *const names[] = {
	"none", "tcp", "tcp6", "udp", "unix", "unix-dgram", "pipe-in", "pipe-out", "event", "epoll", "file",
};

#define BIT(k)		(1u << (k))
#define TCPS		(BIT(TCP) | BIT(TCP6))
#define SOCKETS		(TCPS | BIT(UDP) | BIT(UNIX) | BIT(UNIX_DGRAM))
#define ALL		(~0u)

static unsigned long long state;
static enum kind kind[PLACES];
static unsigned int step, steps;
static bool is_child;
static unsigned char pattern;
static char buf[4096], **own_argv;

static unsigned int below(unsigned int n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state >> 11) % n;
}

static int fd_of(int place)
{
	return BASE + place;
}

/* One of the places that are of these kinds, or -1. */
static int pick(unsigned int kinds)
{
	int some[PLACES], n = 0;

	for (int i = 0; i < PLACES; i++)
		if (kind[i] && (kinds & BIT(kind[i])))
			some[n++] = i;
	return n ? some[below(n)] : -1;
}

static int free_place(void)
{
	for (int i = 0; i < PLACES; i++)
		if (!kind[i])
			return i;
	return -1;
}

static void put(int fd, enum kind k)
{
	int place = free_place();

	if (fd < 0)
		return;
	if (place >= 0) {
		dup2(fd, fd_of(place));
		kind[place] = k;
		fcntl(fd_of(place), F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	}
	close(fd);
}

static void settle(void)
{
	usleep(SETTLE_US);
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf[i] = pattern++;
}

/* FNV-1a */
static unsigned int hash(long n)
{
	unsigned int h = 2166136261u;

	for (long i = 0; i < n && i < (long)sizeof(buf); i++)
		h = (h ^ (unsigned char)buf[i]) * 16777619u;
	return h;
}

static void result(long ret)
{
	if (ret < 0)
		printf(" = %s", strerrorname_np(errno));
	else
		printf(" = %ld", ret);
}

static void data(long ret)
{
	result(ret);
	if (ret > 0)
		printf(" %x", hash(ret));
}

static void subject(const char *call, int place)
{
	printf("%s %s:%d", call, names[kind[place]], place);
}

static void make_pair(int family, int type, enum kind k)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *at = family == AF_INET ? (void *)&four : (void *)&six;
	socklen_t len = family == AF_INET ? sizeof(four) : sizeof(six);
	int a = socket(family, type, 0), b = socket(family, type, 0), one = 1;

	if (bind(a, at, len) || getsockname(a, at, &len))
		printf(" bind %s", strerrorname_np(errno));
	if (type == SOCK_STREAM) {
		int listener = a;

		listen(listener, 1);
		connect(b, at, len);
		a = accept(listener, NULL, NULL);
		close(listener);
		setsockopt(a, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		setsockopt(b, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	} else {
		connect(b, at, len);
		getsockname(b, at, &len);
		connect(a, at, len);
	}
	put(b, k);
	put(a, k);
}

static void make(void)
{
	char path[] = "/tmp/same.XXXXXX";
	unsigned int which = below(9);
	int p[2], fd;

	printf("new %u", which);
	switch (which) {
	case 0:
		make_pair(AF_INET, SOCK_STREAM, TCP);
		break;
	case 1:
		make_pair(AF_INET, SOCK_DGRAM, UDP);
		break;
	case 2:
		make_pair(AF_INET6, SOCK_STREAM, TCP6);
		break;
	case 3:
		socketpair(AF_UNIX, SOCK_STREAM, 0, p);
		put(p[0], UNIX);
		put(p[1], UNIX);
		break;
	case 4:
		socketpair(AF_UNIX, SOCK_DGRAM, 0, p);
		put(p[0], UNIX_DGRAM);
		put(p[1], UNIX_DGRAM);
		break;
	case 5:
		if (pipe(p))
			return;
		put(p[0], PIPE_IN);
		put(p[1], PIPE_OUT);
		break;
	case 6:
		put(eventfd(below(3), below(2) ? EFD_SEMAPHORE : 0), EVENT);
		break;
	case 7:
		put(epoll_create1(0), EPOLL);
		break;
	default:
		fd = mkstemp(path);
		for (long n = 0; n < FILE_BYTES; n += sizeof(buf)) {
			fill(sizeof(buf));
			if (write(fd, buf, sizeof(buf)) < 0)
				printf(" write %s", strerrorname_np(errno));
		}
		close(fd);
		/* The host sends pages that a later write() changes; a node may have copied them. */
		put(open(path, O_RDONLY), REGULAR);
		unlink(path);
	}
}

static void do_send(int at)
{
	size_t len = ONE_OF(0, 1, 7, 100, 300, 700, 1500, 2000);
	int flags = below(4) ? 0 : ONE_OF(MSG_OOB, MSG_DONTWAIT, MSG_EOR, MSG_NOSIGNAL);

	if (flags == MSG_OOB && !(BIT(kind[at]) & TCPS))
		flags = 0;
	fill(len);
	subject("send", at);
	printf(" %zu %x", len, flags);
	result(send(fd_of(at), buf, len, flags));
}

static void do_recv(int at)
{
	size_t len = ONE_OF(0, 1, 10, 100, 3000);
	int flags = below(2) ? 0 : ONE_OF(MSG_PEEK, MSG_TRUNC, MSG_OOB, MSG_WAITALL | MSG_DONTWAIT, MSG_PEEK | MSG_TRUNC);
	long ret;

	memset(buf, 0, sizeof(buf));
	subject("recv", at);
	printf(" %zu %x", len, flags);
	ret = recv(fd_of(at), buf, len, flags);
	/* Of TCP it throws the data away. */
	if ((flags & MSG_TRUNC) && (BIT(kind[at]) & TCPS))
		result(ret);
	else
		data(ret);
}

static void do_recv_waits(int at)
{
	struct timeval limit = { .tv_usec = 3000 };
	int flags = fcntl(fd_of(at), F_GETFL);

	setsockopt(fd_of(at), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	fcntl(fd_of(at), F_SETFL, flags & ~O_NONBLOCK);
	memset(buf, 0, sizeof(buf));
	subject("recv waits", at);
	data(recv(fd_of(at), buf, 900, below(2) ? MSG_WAITALL : 0));
	fcntl(fd_of(at), F_SETFL, flags);
}

static void do_recvmsg(int at)
{
	char control[200];
	struct iovec iov = { buf, ONE_OF(0, 1, 50, 2000) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	long ret;

	memset(buf, 0, sizeof(buf));
	subject("recvmsg", at);
	ret = recvmsg(fd_of(at), &msg, below(2) ? MSG_PEEK : 0);
	data(ret);
	if (ret >= 0)
		printf(" flags %x control %zu name %u", msg.msg_flags, msg.msg_controllen, msg.msg_namelen);
}

static void do_write(int at)
{
	size_t len = ONE_OF(0, 1, 8, 9, 100, 300, 800);
	unsigned long long number = below(4) ? below(5) : ~0ull - below(2);

	fill(len);
	if (kind[at] == EVENT)
		memcpy(buf, &number, sizeof(number));
	subject("write", at);
	printf(" %zu", len);
	result(write(fd_of(at), buf, len));
}

static void do_read(int at)
{
	size_t len = ONE_OF(0, 1, 8, 9, 100, 3000);

	memset(buf, 0, sizeof(buf));
	subject("read", at);
	printf(" %zu", len);
	data(read(fd_of(at), buf, len));
}

static void do_vector(int at)
{
	struct iovec iov[4];
	int n = below(4);

	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){ buf + i * 1000, below(900) };
	if (kind[at] == EVENT)
		return;
	if (below(2)) {
		fill(sizeof(buf));
		subject("writev", at);
		result(writev(fd_of(at), iov, n));
	} else {
		memset(buf, 0, sizeof(buf));
		subject("readv", at);
		result(readv(fd_of(at), iov, n));
		printf(" %x", hash(sizeof(buf)));
	}
}

static void do_shutdown(int at)
{
	int how = below(4);

	subject("shutdown", at);
	printf(" %d", how);
	result(shutdown(fd_of(at), how));
}

static void do_close(int at)
{
	if (below(2))
		return;
	subject("close", at);
	result(close(fd_of(at)));
	kind[at] = NONE;
}

static void do_dup(int at)
{
	int to = free_place();

	if (to < 0)
		return;
	subject("dup", at);
	result(below(2) ? dup2(fd_of(at), fd_of(to)) : dup3(fd_of(at), fd_of(to), O_CLOEXEC));
	kind[to] = kind[at];
}

static void do_dup_over(int at)
{
	int to = pick(ALL);

	if (to == at || below(3))
		return;
	subject("dup", at);
	printf(" over %d", to);
	result(dup2(fd_of(at), fd_of(to)));
	kind[to] = kind[at];
}

static void do_poll(int at)
{
	struct pollfd set[PLACES];
	int n = 0;

	(void)at;
	for (int i = 0; i < PLACES; i++)
		if (kind[i] && below(3))
			set[n++] = (struct pollfd){ fd_of(i), ONE_OF(0, POLLIN, POLLIN | POLLOUT | POLLPRI | POLLRDHUP), 0 };
	printf("poll");
	result(poll(set, n, 0));
	for (int i = 0; i < n; i++)
		printf(" %d:%x", set[i].fd - BASE, set[i].revents);
}

static void do_select(int at)
{
	struct timeval now = { 0 };
	fd_set set[3];

	(void)at;
	for (int k = 0; k < 3; k++)
		FD_ZERO(&set[k]);
	for (int i = 0; i < PLACES; i++)
		for (int k = 0; kind[i] && k < 3; k++)
			if (below(2))
				FD_SET(fd_of(i), &set[k]);
	printf("select");
	result(select(BASE + PLACES, &set[0], &set[1], &set[2], &now));
	for (int i = 0; i < PLACES; i++)
		printf(" %d%d%d", !!FD_ISSET(fd_of(i), &set[0]), !!FD_ISSET(fd_of(i), &set[1]),
		       !!FD_ISSET(fd_of(i), &set[2]));
}

static void do_epoll_ctl(int at)
{
	/* No epolls: tests/limits.toml, of epolls in others. */
	int member = pick(~BIT(EPOLL)), op = 1 + below(3);
	struct epoll_event event = {
		.events = (below(2) ? EPOLLIN : 0) | (below(2) ? EPOLLOUT : 0) | (below(2) ? EPOLLRDHUP : 0) |
			  (below(4) ? 0 : EPOLLET) | (below(5) ? 0 : EPOLLONESHOT) | (below(9) ? 0 : EPOLLEXCLUSIVE),
		.data.u64 = member,
	};

	if (member < 0)
		return;
	/* Edges of TCP come with each acknowledgement, too, and these come as the kernel likes. */
	if (BIT(kind[member]) & TCPS)
		event.events &= ~EPOLLET;
	subject("epoll_ctl", at);
	printf(" %d %s:%d %x", op, names[kind[member]], member, event.events);
	result(epoll_ctl(fd_of(at), op, fd_of(member), &event));
}

static int by_data(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	if (x->data.u64 != y->data.u64)
		return x->data.u64 > y->data.u64 ? 1 : -1;
	return (int)x->events - (int)y->events;
}

static void do_epoll_wait(int at)
{
	struct epoll_event events[PLACES];
	int n = epoll_wait(fd_of(at), events, PLACES, 0);

	subject("epoll_wait", at);
	result(n);
	/* In any order. */
	qsort(events, n > 0 ? n : 0, sizeof(events[0]), by_data);
	for (int i = 0; i < n; i++)
		printf(" %llu:%x", (unsigned long long)events[i].data.u64, events[i].events);
}

static void do_ioctl(int at)
{
	unsigned long call = ONE_OF(FIONREAD, SIOCATMARK, FIONBIO);
	int value = call == FIONBIO ? 1 : 0;

	subject("ioctl", at);
	printf(" %lx", call);
	result(ioctl(fd_of(at), call, &value));
	printf(" %d", value);
}

static void do_getsockopt(int at)
{
	int option = ONE_OF(SO_ERROR, SO_TYPE, SO_ACCEPTCONN, SO_DOMAIN, SO_PROTOCOL, SO_OOBINLINE), value = -7;
	socklen_t len = sizeof(value);

	subject("getsockopt", at);
	printf(" %d", option);
	result(getsockopt(fd_of(at), SOL_SOCKET, option, &value, &len));
	printf(" %d", value);
}

static void do_setsockopt(int at)
{
	struct linger reset = { .l_onoff = 1 };
	int value = below(2), option = ONE_OF(SO_OOBINLINE, SO_KEEPALIVE);

	subject("setsockopt", at);
	printf(" %d %d", option, value);
	result(setsockopt(fd_of(at), SOL_SOCKET, option, &value, sizeof(value)));
	if (!below(6))
		setsockopt(fd_of(at), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
}

static void do_splice(int at)
{
	int to = pick(ALL);
	size_t len = ONE_OF(0, 1, 100, 500, 900);

	subject("splice", at);
	printf(" to %s:%d %zu", names[kind[to]], to, len);
	result(splice(fd_of(at), NULL, fd_of(to), NULL, len, SPLICE_F_NONBLOCK));
}

static void do_sendfile(int at)
{
	int from = pick(BIT(REGULAR));
	off_t offset = below(FILE_BYTES + 1000);
	size_t len = ONE_OF(0, 1, 100, 500, 900);
	bool with_offset = below(2);

	if (from < 0 || kind[at] == UDP)
		return;
	subject("sendfile", at);
	printf(" from %d %zu", from, len);
	result(sendfile(fd_of(at), fd_of(from), with_offset ? &offset : NULL, len));
	printf(" %ld", with_offset ? (long)offset : (long)lseek(fd_of(from), 0, SEEK_CUR));
}

static void do_tee(int at)
{
	int to = pick(BIT(PIPE_OUT));

	if (to < 0)
		return;
	subject("tee", at);
	printf(" to %d", to);
	result(tee(fd_of(at), fd_of(to), below(900), SPLICE_F_NONBLOCK));
}

static void do_flags(int at)
{
	struct stat st = { 0 };

	subject("flags", at);
	result(fcntl(fd_of(at), F_GETFL));
	result(fcntl(fd_of(at), F_GETFD));
	result(fstat(fd_of(at), &st));
	printf(" %o", st.st_mode);
}

static void do_peer(int at)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	subject("peer", at);
	result(getpeername(fd_of(at), (struct sockaddr *)&peer, &len));
	printf(" %d", peer.ss_family);
}

static int option_of(int fd, int option)
{
	int value = 0;
	socklen_t len = sizeof(value);

	getsockopt(fd, SOL_SOCKET, option, &value, &len);
	return value;
}

static enum kind kind_of(int fd)
{
	struct stat st = { 0 };

	fstat(fd, &st);
	if (S_ISREG(st.st_mode))
		return REGULAR;
	if (S_ISFIFO(st.st_mode))
		return (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY ? PIPE_IN : PIPE_OUT;
	if (!S_ISSOCK(st.st_mode))
		return EVENT;
	if (option_of(fd, SO_TYPE) == SOCK_DGRAM)
		return UDP;
	return option_of(fd, SO_DOMAIN) == AF_INET ? TCP : TCP6;
}

static void do_rights(int at)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { buf, 3 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control) };
	int what = pick(~(BIT(UNIX) | BIT(UNIX_DGRAM) | BIT(EPOLL))), fd = -1;
	long ret;

	if (below(2)) {
		if (what < 0)
			return;
		fill(3);
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(&control.head), (int[]){ fd_of(what) }, sizeof(int));
		subject("send", at);
		printf(" descriptor %s:%d", names[kind[what]], what);
		result(sendmsg(fd_of(at), &msg, 0));
		return;
	}
	memset(buf, 0, sizeof(buf));
	subject("receive descriptor", at);
	ret = recvmsg(fd_of(at), &msg, 0);
	data(ret);
	if (ret < 0)
		return;
	printf(" flags %x", msg.msg_flags);
	if (msg.msg_controllen >= CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(&control.head), sizeof(fd));
	if (fd >= 0) {
		printf(" %s", names[kind_of(fd)]);
		put(fd, kind_of(fd));
	}
}

static void do_fork(int at)
{
	int status;
	pid_t pid;

	(void)at;
	if (is_child || below(2))
		return;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		is_child = true;
		steps = step + CHILD_STEPS;
		printf("child");
		return;
	}
	waitpid(pid, &status, 0);
	printf("the child has ended: %x", status);
	for (int i = 0; i < 7; i++)
		below(2);
}

/* "=STATE STEP STEPS KINDS CHILD PATTERN" is all that there is to know. */
static void do_exec(int at)
{
	char all[200], kinds[PLACES + 1] = "";
	char *argv[] = { own_argv[0], all, NULL };

	(void)at;
	if (below(3))
		return;
	for (int i = 0; i < PLACES; i++) {
		kinds[i] = 'A' + kind[i];
		if (kind[i])
			fcntl(fd_of(i), F_SETFD, 0);
	}
	snprintf(all, sizeof(all), "=%llu %u %u %s %d %d", state, step + 1, steps, kinds, is_child, pattern);
	printf("exec\n");
	fflush(stdout);
	execv("/proc/self/exe", argv);
	printf("exec %s", strerrorname_np(errno));
}

static const struct call {
	void (*make)(int at);
	unsigned int kinds, share;	/* how many times as often as others */
} calls[] = {
	{ do_send, SOCKETS, 3 }, { do_recv, SOCKETS, 4 }, { do_recv_waits, TCPS | BIT(UDP), 1 }, { do_recvmsg, SOCKETS, 1 },
	{ do_write, ALL, 1 }, { do_read, ALL, 2 }, { do_vector, ALL, 1 }, { do_shutdown, SOCKETS, 1 }, { do_close, ALL, 1 },
	{ do_dup, ALL, 1 }, { do_dup_over, ALL, 1 }, { do_poll, ALL, 2 }, { do_select, ALL, 1 },
	{ do_epoll_ctl, BIT(EPOLL), 2 }, { do_epoll_wait, BIT(EPOLL), 3 }, { do_ioctl, ALL, 1 }, { do_getsockopt, SOCKETS, 1 },
	{ do_setsockopt, TCPS, 1 }, { do_splice, ALL, 1 }, { do_sendfile, ALL, 1 }, { do_tee, BIT(PIPE_IN), 1 },
	{ do_flags, ALL, 1 }, { do_peer, SOCKETS, 1 }, { do_rights, BIT(UNIX) | BIT(UNIX_DGRAM), 1 }, { do_fork, ALL, 1 },
	{ do_exec, ALL, 1 },
};

static const struct call *choose(void)
{
	unsigned int all = 0, n;

	for (size_t i = 0; i < COUNT(calls); i++)
		all += calls[i].share;
	n = below(all);
	for (size_t i = 0;; n -= calls[i++].share)
		if (n < calls[i].share)
			return &calls[i];
}

int main(int argc, char **argv)
{
	char kinds[PLACES + 1];
	int child, last;

	own_argv = argv;
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && sscanf(argv[1], "=%llu %u %u %24s %d %d", &state, &step, &steps, kinds, &child, &last) == 6) {
		for (int i = 0; i < PLACES; i++)
			kind[i] = kinds[i] - 'A';
		is_child = child;
		pattern = last;
	} else if (argc == 3) {
		state = strtoull(argv[1], NULL, 0) * 2654435761u + 88172645463325252ull;
		steps = atoi(argv[2]);
		for (int i = 0; i < 20; i++)
			below(2);
	} else {
		return 2;
	}
	for (; step < steps; step++) {
		const struct call *call = choose();
		int at = pick(call->kinds);

		printf("%u ", step);
		if (at < 0 || !below(12)) {
			if (free_place() >= 0)
				make();
		} else {
			call->make(at);
		}
		printf("\n");
		settle();
	}
	return 0;
}
