// SPDX-License-Identifier: GPL-2.0
/* poll() of an epoll that gets a member meanwhile: a socket beside an eventfd, and an eventfd into an empty one. */
#include "oracle.h"
#include "waiting.h"

static int e, u[2], ev;
static pid_t tid;

static void *adds_socket(void *arg)
{
	wait_until_asleep(tid);
	must(send(u[1], "x", 1, 0));
	add(e, u[0], EPOLLIN, 2);
	return arg;
}

static void *adds_event(void *arg)
{
	wait_until_asleep(tid);
	add(e, ev, EPOLLIN, 3);
	return arg;
}

int main(void)
{
	struct timeval three = { 3, 0 };
	struct pollfd f = { .events = POLLIN };
	pthread_t t;
	fd_set r;

	tid = gettid();
	udp_pair(AF_INET, u);
	e = must(epoll_create1(0));
	add(e, must(eventfd(0, 0)), EPOLLIN, 1);
	f.fd = e;
	t = spawn(adds_socket, NULL);
	T(poll(&f, 1, 3000));
	join(t);

	e = must(epoll_create1(0));
	ev = must(eventfd(1, 0));
	f.fd = e;
	t = spawn(adds_event, NULL);
	T(poll(&f, 1, 3000));
	join(t);

	e = must(epoll_create1(0));
	FD_ZERO(&r);
	FD_SET(e, &r);
	t = spawn(adds_event, NULL);
	T(select(e + 1, &r, NULL, NULL, &three));
	join(t);
	return 0;
}
