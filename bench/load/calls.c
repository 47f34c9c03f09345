// SPDX-License-Identifier: GPL-2.0
/*
 * calls - what one call costs, one thread, nobody else taking part
 *
 *	calls getppid|fcntl|getsockopt|recv-nothing|epoll_wait-nothing|
 *	      sendto-0|sendto-1472|send-1472|sendmsg-1472|socket-close
 *
 * sendto goes to a socket that is bound and full, so that what is measured ends where
 * the receiver's queue would begin. Prints the median of batches. Where calls are slow,
 * batches have fewer of them.
 */
#include "wire.h"
#include <sys/epoll.h>

#define BATCHES	41
#define WARM	3
#define FIRST	50		/* calls that tell how slow they are */
#define BATCH_MAX	(10 * 1000 * 1000)	/* ns */

static int udp, tcp, ep;
static struct sockaddr_in sink;
static char payload[1472];
static struct iovec iov = { payload, sizeof(payload) };
static struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

static int call_getppid(void)
{
	return syscall(SYS_getppid) < 0;
}

static int call_fcntl(void)
{
	return fcntl(udp, F_GETFL) < 0;
}

static int call_getsockopt(void)
{
	int v;
	socklen_t n = sizeof(v);

	return getsockopt(udp, SOL_SOCKET, SO_RCVBUF, &v, &n);
}

static int call_sendto0(void)
{
	return sendto(udp, payload, 0, 0, (struct sockaddr *)&sink, sizeof(sink)) < 0;
}

static int call_sendto(void)
{
	return sendto(udp, payload, sizeof(payload), 0, (struct sockaddr *)&sink, sizeof(sink)) < 0;
}

static int call_send(void)
{
	return send(udp, payload, sizeof(payload), 0) < 0;
}

static int call_sendmsg(void)
{
	return sendmsg(udp, &msg, 0) < 0;
}

static int call_epoll(void)
{
	struct epoll_event e;

	return epoll_wait(ep, &e, 1, 0) < 0;
}

static int call_recv(void)
{
	char b;

	return recv(tcp, &b, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

static int call_socket(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	return fd < 0 || close(fd);
}

static const struct {
	const char *name;
	int (*call)(void);
	int n;			/* calls of a batch */
} calls[] = {
	{ "getppid", call_getppid, 20000 },
	{ "fcntl", call_fcntl, 20000 },
	{ "getsockopt", call_getsockopt, 10000 },
	{ "recv-nothing", call_recv, 10000 },
	{ "epoll_wait-nothing", call_epoll, 10000 },
	{ "sendto-0", call_sendto0, 2000 },
	{ "sendto-1472", call_sendto, 2000 },
	{ "send-1472", call_send, 2000 },
	{ "sendmsg-1472", call_sendmsg, 2000 },
	{ "socket-close", call_socket, 500 },
};

static void make(int which, int n)
{
	for (int k = 0; k < n; k++)
		if (calls[which].call())
			die(calls[which].name);
}

/* Calls of a batch: as many as the table says, if they don't take too long. */
static int batch_size(int which)
{
	uint64_t start = now_ns(), took;
	int fit;

	make(which, FIRST);
	took = now_ns() - start;
	fit = took ? FIRST * (uint64_t)BATCH_MAX / took : calls[which].n;
	return fit > calls[which].n ? calls[which].n : fit < FIRST ? FIRST : fit;
}

static void prepare(void)
{
	socklen_t len = sizeof(sink);
	int full = socket(AF_INET, SOCK_DGRAM, 0), small = 1, listener;
	struct sockaddr_in a = address("127.0.0.1", "0");
	struct epoll_event e = { .events = EPOLLIN };

	setsockopt(full, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	if (bind(full, (struct sockaddr *)&a, sizeof(a)) ||
	    getsockname(full, (struct sockaddr *)&sink, &len))
		die("bind");
	udp = socket(AF_INET, SOCK_DGRAM, 0);
	if (connect(udp, (struct sockaddr *)&sink, sizeof(sink)))
		die("connect");
	for (int i = 0; i < 64; i++)
		if (send(udp, payload, sizeof(payload), 0) < 0)
			die("send");
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&a, &len))
		die("listen");
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(tcp, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	ep = epoll_create1(0);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, tcp, &e))
		die("epoll_ctl");
}

int main(int argc, char **argv)
{
	double batch[BATCHES], before;
	int which = -1, counter, n;

	for (size_t i = 0; argc == 2 && i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(argv[1], calls[i].name))
			which = i;
	if (which < 0) {
		fprintf(stderr, "usage: see the head of calls.c\n");
		return 2;
	}
	prepare();
	n = batch_size(which);
	for (int i = -WARM; i < BATCHES; i++) {
		uint64_t start = now_ns();

		make(which, n);
		if (i >= 0)
			batch[i] = (double)(now_ns() - start) / n;
	}
	counter = host_calls_open();
	before = host_calls(counter);
	make(which, n);
	if (counter >= 0)
		out("host_calls", (host_calls(counter) - before - 1) / n);
	qsort(batch, BATCHES, sizeof(batch[0]), ascending);
	out("ns", batch[BATCHES / 2]);
	return 0;
}
