// SPDX-License-Identifier: GPL-2.0
/* A blocking connect(), interrupted: it goes on behind the caller's back. */
#include "oracle.h"

static volatile sig_atomic_t handled;
static pthread_t target;
static pid_t target_tid;

static void on_signal(int signo)
{
	handled++;
}

static void *disturb(void *arg)
{
	wait_until_asleep(target_tid);
	pthread_kill(target, SIGUSR1);
	return NULL;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	int l = listener(AF_INET, 0), first = must(socket(AF_INET, SOCK_STREAM, 0)), fd;
	pthread_t t;

	target = pthread_self();
	target_tid = gettid();
	must(sigaction(SIGUSR1, &sa, NULL));
	must(connect_port(first, AF_INET, local_port(l)));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));	/* the queue is full: this one waits */
	t = spawn(disturb, NULL);
	T(connect_port(fd, AF_INET, local_port(l)));
	N(handled);
	join(t);
	say("state %s", tcp_state(fd));
	nonblocking(fd);
	T(connect_port(fd, AF_INET, local_port(l)));
	close(must(accept(l, NULL, NULL)));
	need(wait_for(fd, POLLOUT));
	say("state %s error %d", tcp_state(fd), int_option(fd, SOL_SOCKET, SO_ERROR));
	T(connect_port(fd, AF_INET, local_port(l)));
	return 0;
}
