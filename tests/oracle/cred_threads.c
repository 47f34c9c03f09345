// SPDX-License-Identifier: GPL-2.0
/*
 * libc's setuid() has every thread of the process make the call: those that compute, and those
 * that wait in a call of the network. The bare system call concerns its own thread alone.
 */
#include "cred.h"

static pthread_barrier_t step;
static int pair[2];
static char after[3][16];

static void *computes(void *arg)
{
	volatile unsigned long turns = 0;
	int *stop = arg;

	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE))
		turns++;
	snprintf(after[0], sizeof(after[0]), "%s", tried(low_port(AF_INET, 81)));
	return NULL;
}

static void *waits(void *arg)
{
	char c;

	(void)arg;
	must(recv(pair[0], &c, 1, 0));
	snprintf(after[1], sizeof(after[1]), "%s", tried(low_port(AF_INET, 82)));
	return NULL;
}

static void *alone(void *arg)
{
	(void)arg;
	must(syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY));
	snprintf(after[2], sizeof(after[2]), "%s", tried(low_port(AF_INET, 83)));
	pthread_barrier_wait(&step);
	return NULL;
}

int main(void)
{
	union address a = loopback(AF_INET, 0);
	socklen_t len = sizeof(a.in);
	pthread_t t[3];
	int stop = 0, listener;

	need_root();
	listener = must(socket(AF_INET, SOCK_STREAM, 0));
	must(bind(listener, &a.sa, sizeof(a.in)));
	must(listen(listener, 1));
	must(getsockname(listener, &a.sa, &len));
	pair[1] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(pair[1], &a.sa, sizeof(a.in)));
	pair[0] = must(accept(listener, NULL, NULL));

	pthread_barrier_init(&step, NULL, 2);
	need(!pthread_create(&t[2], NULL, alone, NULL));
	pthread_barrier_wait(&step);
	pthread_join(t[2], NULL);
	say("a thread alone: %s, the process: %s", after[2], tried(low_port(AF_INET, 84)));

	need(!pthread_create(&t[0], NULL, computes, &stop));
	need(!pthread_create(&t[1], NULL, waits, NULL));
	usleep(20000);
	must(setuid(NOBODY));
	say("the caller: %s", tried(low_port(AF_INET, 85)));
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	must(send(pair[1], "x", 1, 0));
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	say("who computed: %s", after[0]);
	say("who waited: %s", after[1]);
	return 0;
}
