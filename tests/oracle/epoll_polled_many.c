// SPDX-License-Identifier: GPL-2.0
/* Many threads wait, each on its own epoll of both kinds that has been polled before. */
#include "waiting.h"

#define THREADS	24

static int epolls[THREADS], results[THREADS], timeout;
static pid_t tids[THREADS];

static void *one(void *arg)
{
	long i = (long)arg;
	struct epoll_event ev;
	int n;

	__atomic_store_n(&tids[i], gettid(), __ATOMIC_SEQ_CST);
	n = epoll_wait(epolls[i], &ev, 1, timeout);
	results[i] = n < 0 ? -errno : n ? (int)ev.data.u32 : 0;
	return NULL;
}

static void all(const char *what, int writers[][2])
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		t[i] = spawn(one, (void *)i);
	if (writers) {
		for (int i = 0; i < THREADS; i++) {
			while (!__atomic_load_n(&tids[i], __ATOMIC_SEQ_CST))
				sleep_ms(1);
		}
		sleep_ms(100);
		for (int i = 0; i < THREADS; i++)
			must(write(writers[i][1], "x", 1));
	}
	for (int i = 0; i < THREADS; i++) {
		join(t[i]);
		tids[i] = 0;
		if (results[i] < 0)
			say("%s, %d: %s", what, i, ename(-results[i]));
		else
			say("%s, %d: %d", what, i, results[i]);
	}
}

int main(void)
{
	int pipes[THREADS][2], udp[THREADS][2];
	char b[4];

	for (int i = 0; i < THREADS; i++) {
		must(pipe(pipes[i]));
		udp_pair(AF_INET, udp[i]);
		epolls[i] = must(epoll_create1(0));
		add(epolls[i], pipes[i][0], EPOLLIN, 1000 + i);
		add(epolls[i], udp[i][0], EPOLLIN, 2000 + i);
		need(!strcmp(polled(epolls[i]), "0"));
	}
	timeout = 50;
	all("nothing", NULL);
	timeout = 10000;
	all("pipes", pipes);
	for (int i = 0; i < THREADS; i++)
		must(read(pipes[i][0], b, 1));
	all("sockets", udp);
	return 0;
}
