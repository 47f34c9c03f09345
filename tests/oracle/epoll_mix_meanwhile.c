// SPDX-License-Identifier: GPL-2.0
/* An epoll gets its first member of the other kind while threads wait on it: they get the members' events and no other. */
#include "oracle.h"
#include "waiting.h"

static int e;
static volatile bool bad, done;

static void look(int ms)
{
	struct epoll_event ev;

	if (epoll_wait(e, &ev, 1, ms) == 1 && ev.data.u64 != 1)
		bad = true;
}

static void *waiter(void *arg)
{
	look(300);
	return arg;
}

static void *looker(void *arg)
{
	while (!done)
		look(0);
	return arg;
}

int main(void)
{
	int u[2], x;
	pthread_t t, l;

	udp_pair(AF_INET, u);
	/* A socket waits; an eventfd comes. */
	for (int i = 0; i < 1500; i++) {
		x = must(eventfd(0, 0));
		e = must(epoll_create1(0));
		add(e, u[0], EPOLLIN, 1);
		t = spawn(waiter, NULL);
		usleep(i % 60);
		add(e, x, EPOLLIN, 2);
		must(send(u[1], "x", 1, 0));
		join(t);
		recv(u[0], &(char){ 0 }, 1, MSG_DONTWAIT);
		close(e);
		close(x);
	}
	/* An eventfd waits; a socket comes; somebody else looks all the time. */
	for (int i = 0; i < 1500; i++) {
		x = must(eventfd(0, 0));
		e = must(epoll_create1(0));
		add(e, x, EPOLLIN, 2);
		done = false;
		t = spawn(waiter, NULL);
		l = spawn(looker, NULL);
		usleep(100 + i % 60);
		add(e, u[0], EPOLLIN, 1);
		must(send(u[1], "x", 1, 0));
		join(t);
		done = true;
		join(l);
		recv(u[0], &(char){ 0 }, 1, MSG_DONTWAIT);
		close(e);
		close(x);
	}
	N(bad);
	return 0;
}
