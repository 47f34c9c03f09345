// SPDX-License-Identifier: GPL-2.0
/* A thread that waits in a call while another sends, shuts down, closes or replaces the socket. */
#include "oracle.h"

static int p[2], u[2], l;
static int step;
static volatile pid_t waiter;

/* Until the other thread waits in its call. */
static void settled(void)
{
	while (!waiter)
		sleep_ms(1);
	wait_until_asleep(waiter);
	waiter = 0;
}

static void *in_tcp(void *arg)
{
	char b[8];
	ssize_t n = (waiter = gettid(), recv(p[0], b, 8, 0));

	say("step %d: recv -> %s", step, n < 0 ? ename(errno) : n ? "data" : "end");
	return NULL;
}

static void *in_udp(void *arg)
{
	char b[8];
	ssize_t n = (waiter = gettid(), recv(u[0], b, 8, 0));

	say("step %d: recv -> %s", step, n < 0 ? ename(errno) : n ? "data" : "end");
	return NULL;
}

static void *in_accept(void *arg)
{
	int r = (waiter = gettid(), accept(l, NULL, NULL));

	say("step %d: accept -> %s", step, r < 0 ? ename(errno) : "ok");
	return NULL;
}

static void *in_poll(void *arg)
{
	struct pollfd f = { p[0], POLLIN | POLLRDHUP };
	int n = (waiter = gettid(), poll(&f, 1, 8000));

	say("step %d: poll -> %d %s", step, n, events(f.revents));
	return NULL;
}

int main(void)
{
	pthread_t t;

	tcp_pair(AF_INET, p);
	udp_pair(AF_INET, u);
	l = listener(AF_INET, 4);
	step = 1;
	t = spawn(in_tcp, NULL);
	settled();
	must(write(p[1], "x", 1));
	join(t);
	step = 2;
	t = spawn(in_udp, NULL);
	settled();
	must(send(u[1], "x", 1, 0));
	join(t);
	step = 3;
	t = spawn(in_accept, NULL);
	settled();
	must(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, local_port(l)));
	join(t);
	step = 4;	/* shut down from beside it */
	t = spawn(in_tcp, NULL);
	settled();
	must(shutdown(p[0], SHUT_RD));
	join(t);
	step = 5;
	t = spawn(in_udp, NULL);
	settled();
	must(shutdown(u[0], SHUT_RD));
	join(t);
	step = 6;
	t = spawn(in_accept, NULL);
	settled();
	must(shutdown(l, SHUT_RD));
	join(t);
	step = 7;	/* closed from beside it: the wait goes on, and still gets the data */
	tcp_pair(AF_INET, p);
	t = spawn(in_tcp, NULL);
	settled();
	T(close(p[0]));
	sleep_ms(60);
	must(write(p[1], "x", 1));
	join(t);
	step = 8;	/* replaced from beside it */
	tcp_pair(AF_INET, p);
	t = spawn(in_tcp, NULL);
	settled();
	must(dup2(u[1], p[0]));
	sleep_ms(60);
	must(write(p[1], "x", 1));
	join(t);
	step = 9;	/* reset while waiting */
	tcp_pair(AF_INET, p);
	t = spawn(in_tcp, NULL);
	settled();
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &(struct linger){ 1, 0 }, sizeof(struct linger)));
	close(p[1]);
	join(t);
	step = 10;
	tcp_pair(AF_INET, p);
	t = spawn(in_poll, NULL);
	settled();
	must(shutdown(p[1], SHUT_WR));
	join(t);
	step = 11;	/* closed while polled: the poll goes on */
	tcp_pair(AF_INET, p);
	t = spawn(in_poll, NULL);
	settled();
	close(p[0]);
	sleep_ms(20);
	must(write(p[1], "x", 1));
	join(t);
	return 0;
}
