// SPDX-License-Identifier: GPL-2.0
/* poll() and select() that block on sockets and host descriptors at once; each kind wakes them. */
#include "oracle.h"

static int udp[2], pipes[2], ux[2];

static void *poke(void *arg)
{
	sleep_ms(40);
	must(write(*(int *)arg, "x", 1));
	return NULL;
}

static void by_poll(const char *who, int *writer, int reader)
{
	struct pollfd f[3] = { { udp[0], POLLIN }, { pipes[0], POLLIN }, { ux[0], POLLIN } };
	pthread_t t = spawn(poke, writer);
	char b[4];
	int n = poll(f, 3, 5000);

	say("poll, %s: %d: %s %s %s", who, n, events(f[0].revents), events(f[1].revents), events(f[2].revents));
	join(t);
	must(read(reader, b, 4));
}

static void by_select(const char *who, int *writer, int reader)
{
	fd_set r, w, x;
	pthread_t t = spawn(poke, writer);
	int top = udp[0] > pipes[0] ? udp[0] : pipes[0], n;
	char b[4];

	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(udp[0], &r);
	FD_SET(pipes[0], &r);
	FD_SET(ux[0], &r);
	FD_SET(udp[0], &x);
	if (ux[0] > top)
		top = ux[0];
	n = select(top + 1, &r, &w, &x, &(struct timeval){ 5, 0 });
	say("select, %s: %d: %d %d %d except %d", who, n, FD_ISSET(udp[0], &r), FD_ISSET(pipes[0], &r),
	    FD_ISSET(ux[0], &r), FD_ISSET(udp[0], &x));
	join(t);
	must(read(reader, b, 4));
}

/* Times that are none. */
static void wrong_times(void)
{
	struct pollfd p[2] = { { .fd = udp[0], .events = POLLIN }, { .fd = pipes[0], .events = POLLIN } };
	int top = (udp[0] > pipes[0] ? udp[0] : pipes[0]) + 1;
	fd_set r;

	T(ppoll(p, 2, &(struct timespec){ 0, 1000000000 }, NULL));
	T(ppoll(p, 2, &(struct timespec){ 0, -1 }, NULL));
	T(ppoll(p, 2, &(struct timespec){ -1, 0 }, NULL));
	T(ppoll(p, 2, &(struct timespec){ 0, 999999 }, NULL));
	FD_ZERO(&r);
	FD_SET(udp[0], &r);
	FD_SET(pipes[0], &r);
	T(pselect(top, &r, NULL, NULL, &(struct timespec){ 0, 1000000000 }, NULL));
}

int main(void)
{
	udp_pair(AF_INET, udp);
	must(pipe(pipes));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	for (int i = 0; i < 3; i++) {
		by_poll("udp", &udp[1], udp[0]);
		by_poll("pipe", &pipes[1], pipes[0]);
		by_poll("unix", &ux[1], ux[0]);
		by_select("udp", &udp[1], udp[0]);
		by_select("pipe", &pipes[1], pipes[0]);
		by_select("unix", &ux[1], ux[0]);
	}
	wrong_times();
	return 0;
}
