// SPDX-License-Identifier: GPL-2.0
/* Several threads wait on one set: which are woken; changes while others wait; EPOLLEXCLUSIVE. */
#include "waiting.h"

static int e, woken, started;
static pid_t tids[4];

/* Until that many threads have been woken, and the rest waits. */
static void settled(int want)
{
	for (int i = 0; i < 1000 && __atomic_load_n(&woken, __ATOMIC_SEQ_CST) < want; i++)
		sleep_ms(5);
	sleep_ms(20);
}

static int u[2];

static void *one(void *arg)
{
	struct epoll_event ev;
	char b[4];
	int n;

	tids[__atomic_fetch_add(&started, 1, __ATOMIC_SEQ_CST)] = gettid();
	n = epoll_wait(e, &ev, 1, 10000);

	if (n == 1) {
		__atomic_add_fetch(&woken, 1, __ATOMIC_SEQ_CST);
		recv(u[0], b, 4, MSG_DONTWAIT);
	}
	return NULL;
}

static pid_t main_tid;

static void *adder(void *arg)
{
	wait_until_asleep(main_tid);
	must(send(u[1], "x", 1, 0));
	add(e, u[0], EPOLLIN, 7);
	return NULL;
}

static void *closer(void *arg)
{
	wait_until_asleep(main_tid);
	must(control(e, EPOLL_CTL_MOD, u[0], EPOLLOUT, 8));
	return NULL;
}

int main(void)
{
	pthread_t t[4], a;

	main_tid = gettid();

	/* Edge: one event wakes one thread. */
	e = must(epoll_create1(0));
	udp_pair(AF_INET, u);
	add(e, u[0], EPOLLIN | EPOLLET, 1);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(one, NULL);
	while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) < 4)
		sleep_ms(1);
	for (int i = 0; i < 4; i++)
		wait_until_asleep(tids[i]);
	must(send(u[1], "x", 1, 0));
	settled(1);
	sleep_ms(100);	/* nobody else */
	N(woken);
	for (int i = 0; i < 3; i++) {
		must(send(u[1], "x", 1, 0));
		settled(2 + i);
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
