// SPDX-License-Identifier: GPL-2.0
/*
 * An epoll inside another is reported once for all its members, of either side: level-triggered, edge-triggered, and
 * only once with EPOLLONESHOT.
 */
#include "waiting.h"

static int pipes[2], udp[2];

static void both(void)
{
	must(write(pipes[1], "x", 1));
	must(send(udp[1], "x", 1, 0));
	sleep_ms(20);
}

static void drain(void)
{
	char b[64];

	must(read(pipes[0], b, sizeof(b)));
	while (recv(udp[0], b, sizeof(b), MSG_DONTWAIT) > 0)
		;
}

/* More threads than events: each of one event for one of them. */
static int outer, gone, count;

static void *one(void *arg)
{
	struct epoll_event ev;

	while (!__atomic_load_n(&gone, __ATOMIC_SEQ_CST)) {
		if (epoll_wait(outer, &ev, 1, 20) == 1)
			__atomic_add_fetch(&count, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(void)
{
	int inner = must(epoll_create1(0)), second = must(epoll_create1(0)), other[2];
	pthread_t t[3];

	outer = must(epoll_create1(0));
	must(pipe(pipes));
	udp_pair(AF_INET, udp);
	udp_pair(AF_INET, other);
	add(inner, pipes[0], EPOLLIN, 1);
	add(inner, udp[0], EPOLLIN, 2);
	add(outer, inner, EPOLLIN, 77);

	both();
	waited("level", outer, 1000);
	waited("level, still", outer, 0);
	drain();
	waited("level, read", outer, 0);

	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 78));
	both();
	waited("one shot", outer, 1000);
	waited("one shot, gone", outer, 20);
	drain();
	both();
	waited("one shot, still gone", outer, 20);
	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 79));
	waited("one shot, armed again", outer, 1000);
	waited("one shot, gone again", outer, 20);
	drain();

	/* One kind first, the other when the shot is spent; then the other way round. */
	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 80));
	must(write(pipes[1], "x", 1));
	waited("one shot, pipe", outer, 1000);
	must(send(udp[1], "x", 1, 0));
	waited("one shot, then the socket", outer, 20);
	drain();
	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 81));
	must(send(udp[1], "x", 1, 0));
	waited("one shot, socket", outer, 1000);
	must(write(pipes[1], "x", 1));
	waited("one shot, then the pipe", outer, 20);
	drain();
	for (int round = 0; round < 20; round++) {
		struct epoll_event ev;

		must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 82));
		must(write(pipes[1], "x", 1));
		must(send(udp[1], "x", 1, 0));
		count += epoll_wait(outer, &ev, 1, 1000);	/* with room for one */
		count += epoll_wait(outer, &ev, 1, 0);
		drain();
	}
	say("one shot, room for one: %d", count);
	count = 0;
	for (int i = 0; i < 3; i++)
		t[i] = spawn(one, NULL);
	for (int round = 1; round <= 20; round++) {
		must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLONESHOT, 83));
		must(write(pipes[1], "x", 1));
		must(send(udp[1], "x", 1, 0));
		while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < round)
			sleep_ms(1);
		sleep_ms(2);
		drain();
	}
	__atomic_store_n(&gone, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; i < 3; i++)
		join(t[i]);
	say("one shot, three threads: %d", count);

	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN | EPOLLET, 84));
	both();
	waited("edge", outer, 1000);
	waited("edge, over", outer, 20);
	must(write(pipes[1], "x", 1));
	waited("edge, pipe", outer, 1000);
	must(send(udp[1], "x", 1, 0));
	waited("edge, socket", outer, 1000);
	waited("edge, over again", outer, 20);
	drain();

	/* Others with the same data are others still. */
	must(control(outer, EPOLL_CTL_MOD, inner, EPOLLIN, 5));
	add(outer, other[0], EPOLLOUT, 5);
	add(outer, pipes[1], EPOLLOUT, 5);
	add(second, pipes[0], EPOLLIN, 1);
	add(outer, second, EPOLLIN, 5);
	must(write(pipes[1], "x", 1));
	{
		struct epoll_event ev[16];
		int n = epoll_wait(outer, ev, 16, 1000), ins = 0, outs = 0;

		for (int i = 0; i < n; i++) {
			ins += ev[i].events == EPOLLIN && ev[i].data.u32 == 5;
			outs += ev[i].events == EPOLLOUT && ev[i].data.u32 == 5;
		}
		say("the same data: %d, in %d, out %d", n, ins, outs);
	}
	must(control(outer, EPOLL_CTL_DEL, other[0], 0, 0));
	must(control(outer, EPOLL_CTL_DEL, pipes[1], 0, 0));
	must(control(outer, EPOLL_CTL_DEL, second, 0, 0));
	must(send(udp[1], "x", 1, 0));
	waited("alone again", outer, 1000);
	close(inner);
	waited("closed", outer, 0);
	return 0;
}
