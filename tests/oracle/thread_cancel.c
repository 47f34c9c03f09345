// SPDX-License-Identifier: GPL-2.0
/* pthread_cancel() of a thread that waits, in each call that may; nothing is left locked or lost. */
#include "oracle.h"

static int u[2], t[2], pipes[2], l, e, full[2];
static volatile int cleaned;

static void clean(void *arg)
{
	cleaned++;
}

struct wait {
	const char *name;
	long (*call)(void);
};

static char b[16];

static long w_recv(void) { return recv(u[1], b, 16, 0); }
static long w_recvfrom(void) { return recvfrom(u[1], b, 16, 0, NULL, NULL); }
static long w_read(void) { return read(t[0], b, 16); }
static long w_readv(void) { return readv(t[0], &(struct iovec){ b, 16 }, 1); }
static long w_accept(void) { return accept(l, NULL, NULL); }
static long w_accept4(void) { return accept4(l, NULL, NULL, SOCK_CLOEXEC); }

static long w_recvmsg(void)
{
	struct iovec iov = { b, 16 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return recvmsg(u[1], &m, 0);
}

static long w_recvmmsg(void)
{
	struct iovec iov = { b, 16 };
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } };

	return recvmmsg(u[1], &m, 1, 0, NULL);
}

static long w_poll(void)
{
	struct pollfd p = { .fd = u[1], .events = POLLIN };

	return poll(&p, 1, -1);
}

static long w_poll_mixed(void)
{
	struct pollfd p[2] = {
		{ .fd = u[1], .events = POLLIN }, { .fd = pipes[0], .events = POLLIN }
	};

	return poll(p, 2, -1);
}

static long w_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(u[1], &set);
	return select(u[1] + 1, &set, NULL, NULL, NULL);
}

static long w_epoll(void)
{
	struct epoll_event ev;

	return epoll_wait(e, &ev, 1, -1);
}

static long w_send(void)
{
	static char large[1 << 16];

	while (send(full[0], large, sizeof(large), 0) > 0)
		;
	return 0;
}

static const struct wait waits[] = {
	{ "recv", w_recv }, { "recvfrom", w_recvfrom }, { "recvmsg", w_recvmsg },
	{ "recvmmsg", w_recvmmsg }, { "read", w_read }, { "readv", w_readv },
	{ "accept", w_accept }, { "accept4", w_accept4 }, { "poll", w_poll },
	{ "poll, mixed", w_poll_mixed }, { "select", w_select }, { "epoll_wait", w_epoll },
	{ "send", w_send },
};

static volatile pid_t tid;

static void *waiter(void *arg)
{
	const struct wait *w = arg;

	pthread_cleanup_push(clean, NULL);
	tid = gettid();
	w->call();
	pthread_cleanup_pop(0);
	return NULL;
}

/* Cancelled before it waits: the first call that may wait is the end. */
static void *early(void *arg)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!*(volatile int *)arg)
		sleep_ms(1);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	recv(u[1], b, 16, 0);
	say("not cancelled");
	return NULL;
}

int main(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	pthread_t thread;
	int flag = 0;
	void *ret;

	udp_pair(AF_INET, u);
	tcp_pair(AF_INET, t);
	tcp_pair(AF_INET, full);
	must(pipe(pipes));
	l = listener(AF_INET, 1);
	e = must(epoll_create1(0));
	must(epoll_ctl(e, EPOLL_CTL_ADD, u[1], &ev));
	must(epoll_ctl(e, EPOLL_CTL_ADD, pipes[0], &ev));
	for (int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < ARRAY_SIZE(waits); i++) {
			cleaned = 0;
			tid = 0;
			must(pthread_create(&thread, NULL, waiter, (void *)&waits[i]) ? -1 : 0);
			while (!tid)
				sleep_ms(1);
			sleep_ms(20);
			need(!pthread_cancel(thread));
			need(!pthread_join(thread, &ret));
			if (!turn)
				say("%s: cancelled %d, cleaned %d", waits[i].name,
				    ret == PTHREAD_CANCELED, cleaned);
			else
				need(ret == PTHREAD_CANCELED && cleaned == 1);
		}
	}
	must(pthread_create(&thread, NULL, early, &flag) ? -1 : 0);
	need(!pthread_cancel(thread));
	flag = 1;
	need(!pthread_join(thread, &ret));
	N(ret == PTHREAD_CANCELED);

	/* All as before. */
	must(send(u[0], "ok", 2, 0));
	T(w_poll());
	T(w_epoll());
	T(w_recv());
	must(send(t[1], "ok", 2, 0));
	T(w_read());
	T(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, local_port(l)));
	N(w_accept() >= 0);
	return 0;
}
