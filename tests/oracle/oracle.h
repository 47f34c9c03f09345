/* SPDX-License-Identifier: GPL-2.0 */
/*
 * oracle.h - what the oracle programs share
 *
 * Each program prints what it saw: results, errno names, flags, event masks,
 * byte counts. It is run once on the host and once on a node, and the two
 * outputs must be equal byte for byte. So nothing that varies between two runs
 * may be printed: no port numbers, pids, addresses of memory, or durations;
 * print how they relate instead. Set-up steps use must(), which ends the
 * program; what is under test uses T(), OK() or N().
 *
 * Exit status: 0 done, 77 this kernel lacks the feature (say why on stdout).
 */
#ifndef ORACLE_H
#define ORACLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wnonnull"
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wstringop-overread"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

__attribute__((constructor)) static void oracle_init(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* The name of an errno value, "ok" for 0. */
static const char *ename(int err)
{
	const char *name = strerrorname_np(err);
	static char other[32];

	if (!err)
		return "ok";
	if (name)
		return name;
	snprintf(other, sizeof(other), "errno %d", err);
	return other;
}

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *format, ...)
{
	int saved = errno;
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	errno = saved;
}

/* The call's text, then its value or its errno. */
#define T(expr) ({						\
	errno = 0;						\
	long t_r = (long)(expr);				\
	int t_e = errno;					\
	if (t_r == -1)						\
		printf("%s -> %s\n", #expr, ename(t_e));	\
	else							\
		printf("%s -> %ld\n", #expr, t_r);		\
	errno = t_e;						\
	t_r;							\
})

/* As T(), but a success is just "ok": for values that may vary. */
#define OK(expr) ({						\
	errno = 0;						\
	long t_r = (long)(expr);				\
	int t_e = errno;					\
	printf("%s -> %s\n", #expr, t_r == -1 ? ename(t_e) : "ok"); \
	errno = t_e;						\
	t_r;							\
})

/* As T(), with words of one's own in place of the call's text. */
#define NAMED(name, expr) ({					\
	errno = 0;						\
	long t_r = (long)(expr);				\
	int t_e = errno;					\
	if (t_r == -1)						\
		printf("%s -> %s\n", name, ename(t_e));		\
	else							\
		printf("%s -> %ld\n", name, t_r);		\
	errno = t_e;						\
	t_r;							\
})

/* A plain value. */
#define N(expr) printf("%s = %ld\n", #expr, (long)(expr))

/* A set-up step that has to work. */
#define must(expr) ({						\
	errno = 0;						\
	long t_r = (long)(expr);				\
	if (t_r == -1) {					\
		printf("set-up failed, line %d: %s: %s\n",	\
		       __LINE__, #expr, ename(errno));		\
		exit(1);					\
	}							\
	t_r;							\
})

#define need(cond) do {						\
	if (!(cond)) {						\
		printf("set-up failed, line %d: %s\n", __LINE__, #cond); \
		exit(1);					\
	}							\
} while (0)

static void skip(const char *why) __attribute__((noreturn));
static void skip(const char *why)
{
	printf("skip: %s\n", why);
	exit(77);
}

/* ---- bits as names ---- */

struct bit_name {
	unsigned int bit;
	const char *name;
};

static const char *bits(unsigned int mask, const struct bit_name *names, size_t count)
{
	static char text[4][256];
	static unsigned int turn;
	char *out = text[turn++ % 4];
	size_t used = 0;

	out[0] = 0;
	for (size_t i = 0; i < count; i++) {
		if (!(mask & names[i].bit))
			continue;
		used += snprintf(out + used, sizeof(text[0]) - used, "%s%s",
				 used ? "|" : "", names[i].name);
		mask &= ~names[i].bit;
	}
	if (mask)
		used += snprintf(out + used, sizeof(text[0]) - used, "%s0x%x",
				 used ? "|" : "", mask);
	if (!used)
		strcpy(out, "0");
	return out;
}

/* poll and epoll bits have the same values. */
static const char *events(unsigned int mask)
{
	static const struct bit_name names[] = {
		{ EPOLLIN, "IN" }, { EPOLLPRI, "PRI" }, { EPOLLOUT, "OUT" },
		{ EPOLLERR, "ERR" }, { EPOLLHUP, "HUP" }, { POLLNVAL, "NVAL" },
		{ EPOLLRDNORM, "RDNORM" }, { EPOLLRDBAND, "RDBAND" },
		{ EPOLLWRNORM, "WRNORM" }, { EPOLLWRBAND, "WRBAND" },
		{ EPOLLMSG, "MSG" }, { EPOLLRDHUP, "RDHUP" },
	};

	return bits(mask, names, ARRAY_SIZE(names));
}

static const char *msg_flags(unsigned int mask)
{
	static const struct bit_name names[] = {
		{ MSG_OOB, "OOB" }, { MSG_PEEK, "PEEK" }, { MSG_TRUNC, "TRUNC" },
		{ MSG_CTRUNC, "CTRUNC" }, { MSG_EOR, "EOR" },
		{ MSG_ERRQUEUE, "ERRQUEUE" }, { MSG_CMSG_CLOEXEC, "CLOEXEC" },
	};

	return bits(mask, names, ARRAY_SIZE(names));
}

/* What poll says at once about one descriptor. */
static const char *polled(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI | POLLOUT | POLLRDHUP };

	if (poll(&p, 1, 0) < 0)
		return ename(errno);
	return events(p.revents);
}

/* Waits until poll reports one of the wanted bits; false after five seconds. */
static bool wait_for(int fd, short want)
{
	struct pollfd p = { .fd = fd, .events = want };

	return poll(&p, 1, 5000) == 1;
}

static const char *tcp_state_name(int state)
{
	static const char * const names[] = {
		"0", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1",
		"FIN_WAIT2", "TIME_WAIT", "CLOSE", "CLOSE_WAIT", "LAST_ACK",
		"LISTEN", "CLOSING", "NEW_SYN_RECV",
	};

	return state >= 0 && state < (int)ARRAY_SIZE(names) ? names[state] : "?";
}

static const char *tcp_state(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return ename(errno);
	return tcp_state_name(info.tcpi_state);
}

/* ---- addresses ---- */

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage ss;
};

/* The loopback address of a family with a port (host order). */
static union address loopback(int family, int port)
{
	union address a;

	memset(&a, 0, sizeof(a));
	a.sa.sa_family = family;
	if (family == AF_INET6) {
		a.in6.sin6_addr = in6addr_loopback;
		a.in6.sin6_port = htons(port);
	} else {
		a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		a.in.sin_port = htons(port);
	}
	return a;
}

static union address address4(const char *text, int port)
{
	union address a;

	memset(&a, 0, sizeof(a));
	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	need(inet_pton(AF_INET, text, &a.in.sin_addr) == 1);
	return a;
}

static union address address6(const char *text, int port)
{
	union address a;

	memset(&a, 0, sizeof(a));
	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = htons(port);
	need(inet_pton(AF_INET6, text, &a.in6.sin6_addr) == 1);
	return a;
}

static socklen_t address_len(const union address *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in);
}

/* The address without its port. */
static const char *address_text(const union address *a)
{
	static char text[4][80];
	static unsigned int turn;
	char *out = text[turn++ % 4];

	if (a->sa.sa_family == AF_INET)
		inet_ntop(AF_INET, &a->in.sin_addr, out, 80);
	else if (a->sa.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &a->in6.sin6_addr, out, 80);
	else
		snprintf(out, 80, "family %d", a->sa.sa_family);
	return out;
}

/* The port a socket is bound to, host order. */
static int local_port(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	must(getsockname(fd, &a.sa, &len));
	return ntohs(a.in.sin_port);	/* same place in both families */
}

static int peer_port(int fd)
{
	union address a;
	socklen_t len = sizeof(a);

	must(getpeername(fd, &a.sa, &len));
	return ntohs(a.in.sin_port);
}

/* ---- sockets ---- */

/* A socket bound to loopback, any port. */
static int bound(int family, int type)
{
	union address a = loopback(family, 0);
	int fd = must(socket(family, type, 0));

	must(bind(fd, &a.sa, address_len(&a)));
	return fd;
}

static int listener(int family, int backlog)
{
	int fd = bound(family, SOCK_STREAM);

	must(listen(fd, backlog));
	return fd;
}

/* connect() to loopback. */
static int connect_port(int fd, int family, int port)
{
	union address a = loopback(family, port);

	return connect(fd, &a.sa, address_len(&a));
}

/* A connected TCP pair: pair[0] the client's end, pair[1] the server's. */
static void tcp_pair(int family, int pair[2])
{
	int l = listener(family, 1);

	pair[0] = must(socket(family, SOCK_STREAM, 0));
	must(connect_port(pair[0], family, local_port(l)));
	pair[1] = must(accept(l, NULL, NULL));
	must(close(l));
}

/* Two UDP sockets on loopback, each connected to the other. */
static void udp_pair(int family, int pair[2])
{
	pair[0] = bound(family, SOCK_DGRAM);
	pair[1] = bound(family, SOCK_DGRAM);
	must(connect_port(pair[0], family, local_port(pair[1])));
	must(connect_port(pair[1], family, local_port(pair[0])));
}

static void nonblocking(int fd)
{
	must(fcntl(fd, F_SETFL, must(fcntl(fd, F_GETFL)) | O_NONBLOCK));
}

static int int_option(int fd, int level, int name)
{
	int value = -1;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, level, name, &value, &len))
		return -errno;
	return value;
}

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* ---- time ---- */

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void sleep_ms(int ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000L };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* A duration as a word: generous above, since machines are busy. */
static const char *about(double start, double expected)
{
	double took = seconds() - start;

	if (took < expected - 0.002)
		return "too early";
	if (took > expected + 3)
		return "too late";
	return "in time";
}

/* ---- threads ---- */

static pthread_t spawn(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	need(!pthread_create(&thread, NULL, run, arg));
	return thread;
}

/*
 * Waits until a thread of this process, whose /proc/self/task/TID/stat is open at fd, sleeps and goes on
 * sleeping, since a fixed time is too short on a busy machine. Gives up after ten seconds.
 */
static void wait_until_asleep_by(int fd)
{
	char text[512];
	int in_a_row = 0;

	for (int i = 0; i < 1000 && in_a_row < 4; i++) {
		ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
		char *state;

		if (n <= 0)
			return;
		text[n] = 0;
		state = strrchr(text, ')');
		in_a_row = state && state[2] == 'S' ? in_a_row + 1 : 0;
		sleep_ms(10);
	}
}

/* As that. Where numbers of descriptors count, the one it takes may be in another thread's way. */
static void wait_until_asleep(pid_t tid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return;
	wait_until_asleep_by(fd);
	close(fd);
}

/* Fills a socket until it stays full: queues grow while they are being used. */
static size_t fill(int fd, const void *data, size_t len)
{
	size_t sent = 0;
	int idle = 0;

	while (idle < 3) {
		ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			sent += n;
			idle = 0;
		} else {
			need(errno == EAGAIN);
			idle++;
			sleep_ms(30);
		}
	}
	return sent;
}

static void join(pthread_t thread)
{
	need(!pthread_join(thread, NULL));
}

#endif /* ORACLE_H */
