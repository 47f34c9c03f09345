// SPDX-License-Identifier: GPL-2.0
/*
 * tour.c - the socket API with one failure of the node's kernel at a time; runs on the node
 *
 *	tour [-v] [-f N] [-m N] [SCENE]...	after `inject prepare`
 *
 * Each scene is a short conversation over loopback. It is played with the first chance of its calls to
 * fail taken (an allocation, a copy from or to this program), then with the second, up to the last.
 * Whatever fails has to do so with an error that Linux has for it, what does not has to be right, and
 * there are as many descriptors afterwards as before. In between it has to go through undisturbed.
 *
 * Ends with "SCENE: injected N, failed N, findings N" for each; status 1 for findings.
 */
#include "node_files.h"
#include <dirent.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tls.h>
#include <net/ethernet.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <sys/sendfile.h>

#define SECONDS_MAX	60	/* for one play */

static bool verbose;
static const char *scene_name;
static int chance, findings, failures;
static jmp_buf ended;
static int opened[64], open_count;
static void *mapped[8];
static size_t mapped_size[8];
static int mapped_count;

__attribute__((format(printf, 1, 2))) static void finding(const char *fmt, ...)
{
	va_list ap;

	printf("finding: %s %d: ", scene_name, chance);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	findings++;
}

/* What a call says that was refused memory, or a copy. */
static bool of_a_shortage(int error)
{
	switch (error) {
	case ENOMEM: case ENOBUFS: case EFAULT:
	case EAGAIN:		/* fork(), and what has been lost on the way and a receiver waits for in vain */
	case EADDRINUSE:	/* bind(), when there is no bucket */
	case ENFILE:		/* socket(), when there is no inode */
	case EBADMSG:		/* TLS, of a record that could not be sent */
	case EINPROGRESS:	/* connect() of SCTP after SO_SNDTIMEO */
	case ENOSYS:		/* SCTP's listen(), without its hash */
	case ECONNREFUSED:	/* SCTP's connect(), to one who could not take it */
	case EPIPE: case ECONNRESET: case ETIMEDOUT: case ECONNABORTED: /* the other end could not go on */
		return true;
	}
	return false;
}

/* Of the step that has failed: the scene ends here. */
static long tried(long result, const char *step)
{
	int error = errno;

	if (result >= 0)
		return result;
	failures++;
	if (verbose)
		printf("%s %d: %s: %s\n", scene_name, chance, step, ename(error));
	if (!of_a_shortage(error) || !chance)
		finding("%s: %s", step, ename(error));
	longjmp(ended, 1);
}
#define TRY(call)	tried((call), #call)

static int keep(int fd)
{
	opened[open_count++] = fd;
	return fd;
}
#define OPEN(call)	keep(TRY(call))

static int sock(int family, int type, int protocol)
{
	struct timeval limit = { .tv_sec = 3 };
	int fd = keep(tried(socket(family, type, protocol), "socket"));

	TRY(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	TRY(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)));
	return fd;
}

static void same(const void *got, const void *sent, size_t len, const char *what)
{
	if (memcmp(got, sent, len))
		finding("%s: other bytes have come than were sent", what);
}

static void off(int fd)
{
	int i;

	for (i = 0; i < open_count; i++)
		if (opened[i] == fd)
			opened[i] = opened[--open_count];
	if (close(fd))
		finding("close: %s", ename(errno));
}

static socklen_t at_loopback(struct sockaddr_storage *a, int family)
{
	memset(a, 0, sizeof(*a));
	a->ss_family = family;
	if (family == AF_INET) {
		((struct sockaddr_in *)a)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(struct sockaddr_in);
	}
	((struct sockaddr_in6 *)a)->sin6_addr = in6addr_loopback;
	return sizeof(struct sockaddr_in6);
}

/* Both ends of a connection, into ends[]. */
static void connection(int family, int protocol, int ends[2])
{
	struct sockaddr_storage a;
	socklen_t len = at_loopback(&a, family);
	int l = sock(family, SOCK_STREAM, protocol);

	TRY(bind(l, (void *)&a, len));
	TRY(listen(l, 4));
	TRY(getsockname(l, (void *)&a, &len));
	ends[0] = sock(family, SOCK_STREAM, protocol);
	TRY(connect(ends[0], (void *)&a, len));
	ends[1] = OPEN(accept4(l, (void *)&a, &len, SOCK_CLOEXEC));
	off(l);
}

#define STREAM	100000

/* A stream in one direction, with as much room as it takes. */
static void stream(int from, int to)
{
	static char sent[STREAM], got[STREAM];
	size_t out = 0, in = 0, i;

	for (i = 0; i < STREAM; i++)
		sent[i] = i * 7 + i / 251;
	while (in < STREAM) {
		struct pollfd p[2] = { { .fd = from, .events = out < STREAM ? POLLOUT : 0 },
				       { .fd = to, .events = POLLIN } };
		ssize_t n;

		if (TRY(poll(p, 2, 5000)) == 0) {
			errno = ETIMEDOUT;
			tried(-1, "a stream's bytes");
		}
		if (p[0].revents & (POLLOUT | POLLERR | POLLHUP)) {
			n = send(from, sent + out, STREAM - out, MSG_DONTWAIT | MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				tried(n, "send");
			out += n > 0 ? n : 0;
		}
		if (p[1].revents) {
			n = recv(to, got + in, STREAM - in, MSG_DONTWAIT);
			if (n < 0 && errno != EAGAIN)
				tried(n, "recv");
			if (!n) {
				errno = ECONNRESET;
				tried(-1, "recv: the end");
			}
			in += n > 0 ? n : 0;
		}
	}
	same(got, sent, STREAM, "stream");
}

static void tcp(int family)
{
	int ends[2];
	char byte;

	connection(family, 0, ends);
	stream(ends[0], ends[1]);
	stream(ends[1], ends[0]);
	TRY(shutdown(ends[0], SHUT_WR));
	if (TRY(recv(ends[1], &byte, 1, 0)))
		finding("recv after shutdown: a byte");
}

static void tcp4(void) { tcp(AF_INET); }
static void tcp6(void) { tcp(AF_INET6); }

static void mptcp(void)
{
	int ends[2];

	connection(AF_INET, IPPROTO_MPTCP, ends);
	stream(ends[0], ends[1]);
}

static void sctp(void)
{
	int ends[2];
	char got[8];

	connection(AF_INET, IPPROTO_SCTP, ends);
	TRY(send(ends[0], "message", 8, MSG_NOSIGNAL));
	if (TRY(recv(ends[1], got, 8, 0)) == 8)
		same(got, "message", 8, "sctp");
}

static void tls(void)
{
	struct tls12_crypto_info_aes_gcm_128 key = {
		.info = { .version = TLS_1_2_VERSION, .cipher_type = TLS_CIPHER_AES_GCM_128 },
	};
	int ends[2];

	connection(AF_INET, 0, ends);
	TRY(setsockopt(ends[0], SOL_TCP, TCP_ULP, "tls", 4));
	TRY(setsockopt(ends[1], SOL_TCP, TCP_ULP, "tls", 4));
	TRY(setsockopt(ends[0], SOL_TLS, TLS_TX, &key, sizeof(key)));
	TRY(setsockopt(ends[1], SOL_TLS, TLS_RX, &key, sizeof(key)));
	stream(ends[0], ends[1]);
}

static void options(void)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 1 };
	struct tcp_info info;
	struct sock_filter pass[] = { BPF_STMT(BPF_RET | BPF_K, 0xffffffff) };
	struct sock_fprog filter = { .len = 1, .filter = pass };
	int ends[2], one = 1, queue = 16;
	socklen_t len = sizeof(info);
	char name[16];

	connection(AF_INET, 0, ends);
	TRY(setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	TRY(setsockopt(ends[0], IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	TRY(setsockopt(ends[0], IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &one, 0) < 0 && errno != EINVAL ? -1 : 0);
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_TIMESTAMP, &one, sizeof(one)));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)));
	TRY(setsockopt(ends[0], IPPROTO_IP, IP_OPTIONS, "\1\1\1\0", 4));
	TRY(setsockopt(ends[0], IPPROTO_IP, IP_RECVERR, &one, sizeof(one)));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &queue, sizeof(queue)));
	TRY(getsockopt(ends[0], IPPROTO_TCP, TCP_INFO, &info, &len));
	len = sizeof(name);
	TRY(getsockopt(ends[0], IPPROTO_TCP, TCP_CONGESTION, name, &len));
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one)));
}

static void udp(int family)
{
	struct sockaddr_storage a, from;
	socklen_t len = at_loopback(&a, family);
	int in = sock(family, SOCK_DGRAM, 0), out = sock(family, SOCK_DGRAM, 0), one = 1;
	static char sent[5000], got[5000];
	char control[256];
	struct iovec iov[2] = { { sent, 1000 }, { sent + 1000, 4000 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	struct mmsghdr many[3];
	int i;

	memset(sent, 'u', sizeof(sent));
	TRY(bind(in, (void *)&a, len));
	TRY(getsockname(in, (void *)&a, &len));
	if (family == AF_INET)
		TRY(setsockopt(in, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)));
	else
		TRY(setsockopt(in, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)));
	TRY(setsockopt(in, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)));
	TRY(connect(out, (void *)&a, len));
	TRY(sendmsg(out, &m, 0));
	iov[0] = (struct iovec){ got, sizeof(got) };
	m = (struct msghdr){ .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = iov, .msg_iovlen = 1,
			     .msg_control = control, .msg_controllen = sizeof(control) };
	if (TRY(recvmsg(in, &m, 0)) == 5000)
		same(got, sent, 5000, "udp");
	/* In pieces, several at a time, and to a name. */
	TRY(send(out, sent, 100, MSG_MORE));
	TRY(send(out, sent, 100, 0));
	TRY(recv(in, got, sizeof(got), 0));
	for (i = 0; i < 3; i++)
		many[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = iov, .msg_iovlen = 1 } };
	iov[0] = (struct iovec){ sent, 300 };
	TRY(sendmmsg(out, many, 3, 0));
	iov[0] = (struct iovec){ got, 300 };
	TRY(recvmmsg(in, many, 1, 0, NULL));
	TRY(sendto(in, sent, 10, 0, (void *)&a, len));
}

static void udp4(void) { udp(AF_INET); }
static void udp6(void) { udp(AF_INET6); }

/* Errors come back, and memory that is sent without a copy. */
static void errors(void)
{
	struct sockaddr_storage a;
	socklen_t len = at_loopback(&a, AF_INET);
	int u = sock(AF_INET, SOCK_DGRAM, 0), one = 1, ends[2];
	static char page[8192];
	char control[512], got[64];
	struct iovec iov = { got, sizeof(got) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct pollfd p = { .fd = u };

	((struct sockaddr_in *)&a)->sin_port = htons(1);
	TRY(setsockopt(u, IPPROTO_IP, IP_RECVERR, &one, sizeof(one)));
	TRY(connect(u, (void *)&a, len));
	TRY(send(u, page, 10, 0));
	TRY(poll(&p, 1, 300));
	TRY(recvmsg(u, &m, MSG_ERRQUEUE));
	connection(AF_INET, 0, ends);
	TRY(setsockopt(ends[0], SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)));
	TRY(send(ends[0], page, sizeof(page), MSG_ZEROCOPY | MSG_NOSIGNAL));
	TRY(recv(ends[1], page, sizeof(page), 0));
	p = (struct pollfd){ .fd = ends[0] };
	TRY(poll(&p, 1, 300));
	m.msg_controllen = sizeof(control);
	TRY(recvmsg(ends[0], &m, MSG_ERRQUEUE));
}

static void groups(void)
{
	struct ip_mreqn four = { .imr_multiaddr.s_addr = htonl(0xe9010203), .imr_address.s_addr = htonl(INADDR_LOOPBACK) };
	struct ip_mreq_source source = { four.imr_multiaddr, four.imr_address, { htonl(0x7f000009) } };
	struct ipv6_mreq six = { .ipv6mr_interface = 1 };
	int u4 = sock(AF_INET, SOCK_DGRAM, 0), u6 = sock(AF_INET6, SOCK_DGRAM, 0);

	inet_pton(AF_INET6, "ff02::1:2:3", &six.ipv6mr_multiaddr);
	TRY(setsockopt(u4, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, &source, sizeof(source)));
	TRY(setsockopt(u4, IPPROTO_IP, IP_DROP_SOURCE_MEMBERSHIP, &source, sizeof(source)));
	TRY(setsockopt(u4, IPPROTO_IP, IP_ADD_MEMBERSHIP, &four, sizeof(four)));
	TRY(setsockopt(u6, IPPROTO_IPV6, IPV6_JOIN_GROUP, &six, sizeof(six)));
	TRY(setsockopt(u6, IPPROTO_IPV6, IPV6_LEAVE_GROUP, &six, sizeof(six)));
}

static void raw(void)
{
	struct { uint8_t type, code; uint16_t sum, id, seq; char data[32]; } echo = { .type = 8 };
	struct sockaddr_storage a;
	socklen_t len = at_loopback(&a, AF_INET);
	int r = sock(AF_INET, SOCK_RAW, IPPROTO_ICMP), i;
	uint32_t sum = 0;
	char got[256];

	for (i = 0; i < (int)sizeof(echo) / 2; i++)
		sum += ((uint16_t *)&echo)[i];
	echo.sum = ~(sum + (sum >> 16));
	TRY(sendto(r, &echo, sizeof(echo), 0, (void *)&a, len));
	TRY(recv(r, got, sizeof(got), 0));
}

static void packet(void)
{
	struct tpacket_req3 ring = { .tp_block_size = 1 << 14, .tp_block_nr = 4, .tp_frame_size = 2048,
				     .tp_frame_nr = 32, .tp_retire_blk_tov = 10 };
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = 1 };
	int p = sock(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), v = TPACKET_V3, fanout = 77 | PACKET_FANOUT_HASH << 16;
	struct packet_mreq promisc = { .mr_ifindex = 1, .mr_type = PACKET_MR_PROMISC };
	char frame[100] = { [12] = 0x88, [13] = 0xb5 };
	struct pollfd wait = { .fd = p, .events = POLLIN };
	void *at;

	TRY(setsockopt(p, SOL_PACKET, PACKET_VERSION, &v, sizeof(v)));
	if (setsockopt(p, SOL_PACKET, PACKET_RX_RING, &ring, sizeof(ring))) {
		if (errno == EINVAL)
			errno = EFAULT;		/* packet_setsockopt() says so when the copy fails */
		tried(-1, "PACKET_RX_RING");
	}
	TRY(bind(p, (void *)&ll, sizeof(ll)));
	TRY(setsockopt(p, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc)));
	TRY(setsockopt(p, SOL_PACKET, PACKET_FANOUT, &fanout, sizeof(fanout)));
	at = mmap(NULL, 4 << 14, PROT_READ | PROT_WRITE, MAP_SHARED, p, 0);
	TRY(at == MAP_FAILED ? -1 : 0);
	mapped[mapped_count] = at;
	mapped_size[mapped_count++] = 4 << 14;
	TRY(sendto(p, frame, sizeof(frame), 0, (void *)&ll, sizeof(ll)));
	TRY(poll(&wait, 1, 300));
}

static void epoll(void)
{
	struct epoll_event e = { .events = EPOLLIN }, got[4];
	int ep, ends[2], host;

	connection(AF_INET, 0, ends);
	host = OPEN(eventfd(0, EFD_CLOEXEC));
	ep = OPEN(epoll_create1(EPOLL_CLOEXEC));
	TRY(epoll_ctl(ep, EPOLL_CTL_ADD, ends[1], &e));
	e.data.u32 = 1;
	TRY(epoll_ctl(ep, EPOLL_CTL_ADD, host, &e));
	TRY(epoll_wait(ep, got, 4, 0));
	TRY(send(ends[0], "x", 1, MSG_NOSIGNAL));
	TRY(epoll_wait(ep, got, 4, 2000));
	TRY(eventfd_write(host, 1));
	TRY(epoll_wait(ep, got, 4, 2000));
	TRY(epoll_ctl(ep, EPOLL_CTL_MOD, ends[1], &e));
	TRY(epoll_ctl(ep, EPOLL_CTL_DEL, ends[1], &e));
}

static void waits(void)
{
	struct pollfd p[20];
	int ends[2], i;
	fd_set set;
	struct timeval none = { 0 };

	connection(AF_INET6, 0, ends);
	for (i = 0; i < 20; i++)
		p[i] = (struct pollfd){ .fd = ends[i % 2], .events = POLLIN };
	TRY(poll(p, 20, 10));
	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	TRY(select(ends[0] + 1, &set, NULL, NULL, &none));
	TRY(fcntl(ends[0], F_SETOWN, getpid()));
	TRY(fcntl(ends[0], F_SETFL, O_ASYNC | O_NONBLOCK));
	TRY(send(ends[1], "x", 1, MSG_NOSIGNAL));
}

static void move(void)
{
	int ends[2], pipes[2], file = OPEN(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), other;
	char got[4096];

	connection(AF_INET, 0, ends);
	TRY(sendfile(ends[0], file, NULL, 4096));
	TRY(recv(ends[1], got, sizeof(got), 0));
	TRY(pipe2(pipes, O_CLOEXEC));
	keep(pipes[0]);
	keep(pipes[1]);
	TRY(write(pipes[1], "through a pipe", 14));
	TRY(splice(pipes[0], NULL, ends[0], NULL, 14, 0));
	TRY(splice(ends[1], NULL, pipes[1], NULL, 4096, 0));
	other = OPEN(fcntl(ends[0], F_DUPFD_CLOEXEC, 100));
	TRY(write(other, "dup", 3));
	TRY(dup3(ends[1], other, O_CLOEXEC));
}

static void passing(void)
{
	union { struct cmsghdr h; char room[CMSG_SPACE(sizeof(int))]; } c;
	char byte = 'x';
	struct iovec iov = { &byte, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c) };
	int pair[2], ends[2], got;

	connection(AF_INET, 0, ends);
	TRY(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
	keep(pair[0]);
	keep(pair[1]);
	c.h = (struct cmsghdr){ CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	memcpy(CMSG_DATA(&c.h), &ends[0], sizeof(int));
	TRY(sendmsg(pair[0], &m, 0));
	m.msg_controllen = sizeof(c);
	TRY(recvmsg(pair[1], &m, MSG_CMSG_CLOEXEC));
	if (m.msg_controllen < CMSG_LEN(sizeof(int))) {
		errno = ENOMEM;		/* MSG_CTRUNC: Linux too loses what it can't install */
		tried(-1, "the descriptor passed");
	}
	memcpy(&got, CMSG_DATA(&c.h), sizeof(int));
	keep(got);
	TRY(send(got, "y", 1, MSG_NOSIGNAL));
	TRY(recv(ends[1], &byte, 1, 0));
}

static void child_ended(pid_t pid, const char *what)
{
	int status;

	TRY(waitpid(pid, &status, 0));
	if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
		finding("%s ended with status %#x", what, status);
}

static void forks(void)
{
	char *argv[] = { "true", NULL };
	int ends[2], error;
	char byte;
	pid_t pid;

	connection(AF_INET, 0, ends);
	pid = TRY(fork());
	if (!pid)
		_exit(send(ends[0], "c", 1, MSG_NOSIGNAL) != 1);
	child_ended(pid, "child");
	TRY(recv(ends[1], &byte, 1, MSG_DONTWAIT));
	error = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
	if (error) {
		errno = error;
		tried(-1, "posix_spawn");
	}
	child_ended(pid, "spawned");
}

static void *threaded(void *arg)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0)
		close(fd);
	return NULL;
}

static void threads(void)
{
	pthread_t t[3];
	int i, error = 0;

	for (i = 0; i < 3 && !error; i++)
		error = pthread_create(&t[i], NULL, threaded, NULL);
	i -= !!error;
	while (i--)
		pthread_join(t[i], NULL);
	if (error) {
		errno = error;
		tried(-1, "pthread_create");
	}
}

static void files(void)
{
	int fd = OPEN(open("/proc/net/tcp", O_RDONLY | O_CLOEXEC)), dir;
	char text[4096];

	TRY(read(fd, text, sizeof(text)));
	fd = OPEN(open("/proc/sys/net/ipv4/ip_forward", O_RDWR | O_CLOEXEC));
	TRY(read(fd, text, sizeof(text)));
	TRY(pwrite(fd, "0\n", 2, 0));
	dir = OPEN(open("/sys/class/net", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	TRY(syscall(SYS_getdents64, dir, text, sizeof(text)));
	TRY(readlinkat(dir, "lo", text, sizeof(text)));
	fd = OPEN(openat(dir, "lo/mtu", O_RDONLY | O_CLOEXEC));
	TRY(read(fd, text, sizeof(text)));
	TRY(access("/proc/net/udp", R_OK));
}

static void ioctls(void)
{
	int u = sock(AF_INET, SOCK_DGRAM, 0), tun;
	struct ifreq r = { .ifr_name = "lo" };
	char room[1024];
	struct ifconf all = { .ifc_len = sizeof(room), .ifc_buf = room };

	TRY(ioctl(u, SIOCGIFCONF, &all));
	TRY(ioctl(u, SIOCGIFMTU, &r));
	TRY(ioctl(u, SIOCGIFHWADDR, &r));
	TRY(ioctl(u, SIOCGIFADDR, &r));
	tun = OPEN(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
	r = (struct ifreq){ .ifr_name = "tour%d", .ifr_flags = IFF_TAP | IFF_NO_PI };
	if (ioctl(tun, TUNSETIFF, &r)) {
		if (errno == EINVAL)
			errno = ENOMEM;	/* device_add() of one whose name could not be copied */
		tried(-1, "ioctl(tun, TUNSETIFF, &r)");
	}
	r.ifr_flags = IFF_UP;
	TRY(ioctl(u, SIOCSIFFLAGS, &r));
}

/* A request and its answer. */
static void netlink(int fd, int type, int flags, const void *body, size_t len)
{
	struct { struct nlmsghdr h; char body[256]; } q = { .h = {
		.nlmsg_len = NLMSG_LENGTH(len), .nlmsg_type = type, .nlmsg_seq = 1,
		.nlmsg_flags = NLM_F_REQUEST | flags } };
	static char got[32768];
	struct nlmsghdr *h = (void *)got;
	long n;

	memcpy(q.body, body, len);
	TRY(send(fd, &q, q.h.nlmsg_len, 0));
	do {
		n = TRY(recv(fd, got, sizeof(got), 0));
		if (n >= (long)sizeof(*h) && h->nlmsg_type == NLMSG_ERROR && ((struct nlmsgerr *)NLMSG_DATA(h))->error) {
			errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
			tried(-1, "a netlink request");
		}
	} while ((flags & NLM_F_DUMP) == NLM_F_DUMP && n && h->nlmsg_type != NLMSG_DONE);
}

static void routes(void)
{
	int fd = sock(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	struct sockaddr_nl name = { .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK };
	struct ifinfomsg link = { 0 };
	struct ifaddrmsg addr = { .ifa_family = AF_UNSPEC };
	struct rtmsg route = { 0 };
	struct { struct rtmsg m; struct rtattr d; uint32_t dst; struct rtattr o; uint32_t oif; } new = {
		.m = { .rtm_family = AF_INET, .rtm_dst_len = 32, .rtm_table = 77, .rtm_protocol = RTPROT_STATIC,
		       .rtm_scope = RT_SCOPE_LINK, .rtm_type = RTN_UNICAST },
		.d = { sizeof(struct rtattr) + 4, RTA_DST }, .dst = htonl(0xc0000201),
		.o = { sizeof(struct rtattr) + 4, RTA_OIF }, .oif = 1 };

	TRY(bind(fd, (void *)&name, sizeof(name)));
	netlink(fd, RTM_GETLINK, NLM_F_DUMP, &link, sizeof(link));
	netlink(fd, RTM_GETADDR, NLM_F_DUMP, &addr, sizeof(addr));
	netlink(fd, RTM_GETROUTE, NLM_F_DUMP, &route, sizeof(route));
	netlink(fd, RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &new, sizeof(new));
	netlink(fd, RTM_DELROUTE, NLM_F_ACK, &new, sizeof(new));
}

/* In a child, whose namespace ends with it. */
static void namespaces(void)
{
	pid_t pid = TRY(fork());
	int fd;

	if (!pid) {
		arm(open_fail_nth(), chance);
		/* Dozens of authors set it up, and say EEXIST, ENODEV, EAFNOSUPPORT, too. */
		if (unshare(CLONE_NEWNET))
			_exit(1);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		_exit(fd >= 0 ? 0 : of_a_shortage(errno) ? 1 : errno);
	}
	child_ended(pid, "child in a namespace");
}

static const struct scene {
	const char *name;
	void (*play)(void);
	bool child;	/* takes its chances in a child: N of them, for none can be seen from here */
} scenes[] = {
	{ "tcp4", tcp4 }, { "tcp6", tcp6 }, { "mptcp", mptcp }, { "sctp", sctp }, { "tls", tls },
	{ "options", options }, { "udp4", udp4 }, { "udp6", udp6 }, { "errors", errors }, { "groups", groups },
	{ "raw", raw }, { "packet", packet }, { "epoll", epoll }, { "waits", waits }, { "move", move },
	{ "passing", passing }, { "forks", forks }, { "threads", threads }, { "files", files },
	{ "ioctls", ioctls }, { "routes", routes }, { "namespaces", namespaces, true },
};
#define CHILD_CHANCES	1500

static int descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static bool play(const struct scene *s)
{
	bool whole = !setjmp(ended);

	alarm(SECONDS_MAX);
	if (whole)
		s->play();
	alarm(0);
	return whole;
}

static void tidy(void)
{
	while (mapped_count) {
		mapped_count--;
		munmap(mapped[mapped_count], mapped_size[mapped_count]);
	}
	while (open_count)
		off(opened[open_count - 1]);
}

static void hangs(int sig)
{
	static const char text[] = "finding: a call does not return\n";

	(void)!write(1, text, sizeof(text) - 1);
	fprintf(stderr, "%s %d\n", scene_name, chance);
	_exit(1);
}

static int tour(const struct scene *s, int from, int most)
{
	int fd = open_fail_nth(), n, before;

	scene_name = s->name;
	findings = failures = 0;
	chance = 0;
	play(s);	/* what is made once is made now */
	tidy();
	before = descriptors();
	for (n = from; n <= most; n++) {
		bool last;
		int now;

		chance = n;
		if (!s->child)
			arm(fd, n);
		play(s);
		last = s->child ? n > CHILD_CHANCES : !has_failed(fd);
		arm(fd, 0);
		tidy();
		now = descriptors();
		if (now != before) {
			finding("%d descriptors, %d before", now, before);
			before = now;
		}
		chance = 0;
		if (n % 16 == 0 || last) {
			int had = failures;

			play(s);
			tidy();
			failures = had;
		}
		if (last)
			break;
	}
	close(fd);
	printf("%s: injected %d, failed %d, findings %d\n", s->name, n - from, failures, findings);
	return findings;
}

int main(int argc, char **argv)
{
	int opt, from = 1, most = 100000, found = 0, i;
	size_t k;

	while ((opt = getopt(argc, argv, "vf:m:")) != -1) {
		if (opt == 'v') {
			verbose = true;
		} else if (opt == 'f') {
			from = atoi(optarg);
		} else if (opt == 'm') {
			most = atoi(optarg);
		} else {
			fprintf(stderr, "usage: tour [-v] [-f N] [-m N] [SCENE]...\n");
			return 2;
		}
	}
	signal(SIGALRM, hangs);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	for (k = 0; k < ARRAY_SIZE(scenes); k++) {
		bool wanted = optind == argc;

		for (i = optind; i < argc; i++)
			wanted |= !strcmp(argv[i], scenes[k].name);
		if (wanted)
			found += tour(&scenes[k], from, most);
	}
	return found > 0;
}
