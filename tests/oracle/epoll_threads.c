// SPDX-License-Identifier: GPL-2.0
/* Several threads wait on one set: who is woken; changes while others wait; EPOLLEXCLUSIVE. */
#include "waiting.h"

static int e, woken;
static int u[2];

static void *one(void *arg)
{
	struct epoll_event ev;
	char b[4];
	int n = epoll_wait(e, &ev, 1, 3000);

	if (n == 1) {
		__atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
		recv(u[0], b, 4, MSG_DONTWAIT);
	}
	return NULL;
}

static void *adder(void *arg)
{
	sleep_ms(50);
	must(send(u[1], "x", 1, 0));
	add(e, u[0], EPOLLIN, 7);
	return NULL;
}

static void *closer(void *arg)
{
	sleep_ms(50);
	must(control(e, EPOLL_CTL_MOD, u[0], EPOLLOUT, 8));
	return NULL;
}

int main(void)
{
	pthread_t t[4], a;

	/* Edge: one event wakes one thread. */
	e = must(epoll_create1(0));
	udp_pair(AF_INET, u);
	add(e, u[0], EPOLLIN | EPOLLET, 1);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(one, NULL);
	sleep_ms(100);
	must(send(u[1], "x", 1, 0));
	sleep_ms(100);
	N(woken);
	for (int i = 0; i < 3; i++) {
		must(send(u[1], "x", 1, 0));
		sleep_ms(20);
	}
	for (int i = 0; i < 4; i++)
		join(t[i]);
	N(woken);

	/* A descriptor added, or changed, while a thread waits. */
	must(control(e, EPOLL_CTL_DEL, u[0], 0, 0));
	a = spawn(adder, NULL);
	waited("added meanwhile", e, 5000);
	join(a);
	{
		char b[4];

		must(recv(u[0], b, 4, 0));
	}
	a = spawn(closer, NULL);
	waited("changed meanwhile", e, 5000);
	join(a);
	return 0;
}
