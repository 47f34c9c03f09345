// SPDX-License-Identifier: GPL-2.0
/* SO_RCVTIMEO and SO_SNDTIMEO in action, and the time-outs of the waiting calls. */
#include "oracle.h"

static struct timeval quarter = { 0, 250000 };

#define TIMED(expected, expr) do {				\
	double start = seconds();				\
	T(expr);						\
	say("  %s", about(start, expected));			\
} while (0)

int main(void)
{
	static char big[1 << 20];
	int p[2], u = bound(AF_INET, SOCK_DGRAM), l = listener(AF_INET, 1), e = must(epoll_create1(0));
	struct iovec iov = { big, 8 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mm = { .msg_hdr = m };
	struct timespec ts = { 0, 250000000 };
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd pfd = { .fd = u, .events = POLLIN };
	struct timeval tv = quarter;
	fd_set set;

	tcp_pair(AF_INET, p);
	must(setsockopt(p[0], SOL_SOCKET, SO_RCVTIMEO, &quarter, sizeof(quarter)));
	must(setsockopt(u, SOL_SOCKET, SO_RCVTIMEO, &quarter, sizeof(quarter)));
	must(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &quarter, sizeof(quarter)));
	TIMED(0.25, read(p[0], big, 8));
	TIMED(0.25, recv(p[0], big, 8, MSG_PEEK));
	TIMED(0.25, recvfrom(u, big, 8, 0, NULL, NULL));
	TIMED(0.25, recvmsg(u, &m, 0));
	TIMED(0.25, readv(p[0], &iov, 1));
	TIMED(0.25, recvmmsg(u, &mm, 1, 0, NULL));
	TIMED(0.25, accept(l, NULL, NULL));
	must(write(p[1], "abc", 3));
	TIMED(0.25, recv(p[0], big, 8, MSG_WAITALL));
	TIMED(0, recv(p[0], big, 8, MSG_DONTWAIT));

	/* A full send buffer: what could not go out in time is reported. */
	must(setsockopt(p[0], SOL_SOCKET, SO_SNDTIMEO, &quarter, sizeof(quarter)));
	fill(p[0], big, sizeof(big));
	TIMED(0.25, write(p[0], big, 100));
	/* Queues grow as they are used, so a part of it may go. */
	TIMED(0.25, send(p[0], big, sizeof(big), 0) < (ssize_t)sizeof(big));

	/* The calls with a time-out of their own. */
	TIMED(0.25, poll(&pfd, 1, 250));
	TIMED(0, poll(&pfd, 1, 0));
	TIMED(0.25, ppoll(&pfd, 1, &ts, NULL));
	FD_ZERO(&set);
	FD_SET(u, &set);
	TIMED(0.25, select(u + 1, &set, NULL, NULL, &tv));
	say("time left %ld.%06ld, still set %d", tv.tv_sec, tv.tv_usec, FD_ISSET(u, &set));
	FD_SET(u, &set);
	TIMED(0.25, pselect(u + 1, &set, NULL, NULL, &ts, NULL));
	say("ts untouched %ld", ts.tv_nsec);
	must(epoll_ctl(e, EPOLL_CTL_ADD, u, &ev));
	TIMED(0.25, epoll_wait(e, &ev, 1, 250));
	TIMED(0, epoll_wait(e, &ev, 1, 0));
	TIMED(0.25, syscall(SYS_epoll_pwait2, e, &ev, 1, &ts, NULL, 8));
	ts.tv_nsec = 20000000;
	TIMED(0.02, ppoll(&pfd, 1, &ts, NULL));
	TIMED(0.25, poll(NULL, 0, 250));
	return 0;
}
