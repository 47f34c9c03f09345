// SPDX-License-Identifier: GPL-2.0
/* Sets without any socket of the network: pipes only, and sets that change their kind. */
#include "waiting.h"

static void *late(void *arg)
{
	sleep_ms(50);
	must(write(*(int *)arg, "x", 1));
	return NULL;
}

int main(void)
{
	int e = must(epoll_create1(0)), pipes[2], u;
	struct epoll_event ev;
	pthread_t t;
	char b[4];

	must(pipe(pipes));
	add(e, pipes[0], EPOLLIN, 1);
	waited("empty", e, 0);
	t = spawn(late, &pipes[1]);
	waited("blocking", e, 60000);
	join(t);
	u = bound(AF_INET, SOCK_DGRAM);
	add(e, u, EPOLLIN | EPOLLOUT, 2);
	waited("a socket joins", e, 60000);
	T(control(e, EPOLL_CTL_DEL, u, 0, 0));
	must(read(pipes[0], b, 4));
	waited("and leaves", e, 20);
	t = spawn(late, &pipes[1]);
	waited("blocking", e, 60000);
	join(t);
	close(pipes[1]);
	T(epoll_wait(e, &ev, 1, 60000));
	say("%s", events(ev.events));
	return 0;
}
