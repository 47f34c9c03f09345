/* SPDX-License-Identifier: GPL-2.0 */
/* waiting.h - epoll, without the noise */
#ifndef WAITING_H
#define WAITING_H

#include "oracle.h"

static int by_data(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	return x->data.u64 < y->data.u64 ? -1 : x->data.u64 > y->data.u64;
}

/* One epoll_wait; the events in the order of their data. */
static int waited(const char *what, int e, int timeout)
{
	struct epoll_event ev[64];
	int n = epoll_wait(e, ev, 64, timeout);

	printf("%s:", what);
	if (n < 0)
		printf(" %s", ename(errno));
	if (n > 0)
		qsort(ev, n, sizeof(ev[0]), by_data);
	for (int i = 0; i < n; i++)
		printf(" %#llx=%s", (unsigned long long)ev[i].data.u64, events(ev[i].events));
	if (!n)
		printf(" nothing");
	printf("\n");
	return n;
}

static int control(int e, int op, int fd, uint32_t mask, uint64_t data)
{
	struct epoll_event ev = { .events = mask, .data.u64 = data };

	return epoll_ctl(e, op, fd, &ev);
}

static void add(int e, int fd, uint32_t mask, uint64_t data)
{
	must(control(e, EPOLL_CTL_ADD, fd, mask, data));
}

#endif /* WAITING_H */
