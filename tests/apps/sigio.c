// SPDX-License-Identifier: GPL-2.0
/*
 * sigio.c - a signal for each packet, while packets come from outside (src/apps/ports.rs)
 *
 *	sigio receive PORT SECONDS	UDP with O_ASYNC; says "lost" and fails when a packet waits and no signal has come
 *	sigio send ADDR PORT SECONDS	some 20,000 packets a second
 *
 * On loopback the sender's own call raises the signal. Here another thread drives the receiver's task
 * when a packet comes, at any point of what is done for the signal before.
 */
#include "oracle.h"

static int fd;
static volatile long signals;

static void on_sigio(int sig)
{
	char buf[2000];

	signals++;
	while (recv(fd, buf, sizeof(buf), 0) >= 0)
		;
}

static int receive(int port, double duration)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	double end = seconds() + duration;
	char buf[2000];

	fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	must(bind(fd, (void *)&a, sizeof(a)));
	signal(SIGIO, on_sigio);
	must(fcntl(fd, F_SETOWN, getpid()));
	must(fcntl(fd, F_SETFL, O_ASYNC | O_NONBLOCK));
	/* Data that came before O_ASYNC has no signal. */
	while (recv(fd, buf, sizeof(buf), 0) >= 0)
		;
	while (seconds() < end) {
		long before = signals;
		int i;

		/* A signal comes at once; half a second without one, and with a packet, is no delay. */
		for (i = 0; i < 25 && signals == before; i++)
			sleep_ms(20);
		if (signals == before && recv(fd, buf, sizeof(buf), MSG_PEEK) >= 0) {
			sleep_ms(100);
			if (signals != before)
				continue;
			printf("lost, after %ld signals\n", signals);
			return 1;
		}
	}
	printf("%ld signals\n", signals);
	return signals ? 0 : 1;
}

static int send_all(const char *addr, int port, double duration)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	double end = seconds() + duration;
	int s = must(socket(AF_INET, SOCK_DGRAM, 0));

	need(inet_pton(AF_INET, addr, &a.sin_addr) == 1);
	must(connect(s, (void *)&a, sizeof(a)));
	while (seconds() < end) {
		send(s, "x", 1, 0);	/* nobody may be there yet */
		usleep(1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "receive"))
		return receive(atoi(argv[2]), atof(argv[3]));
	if (argc == 5 && !strcmp(argv[1], "send"))
		return send_all(argv[2], atoi(argv[3]), atof(argv[4]));
	fprintf(stderr, "usage: sigio receive PORT SECONDS | send ADDR PORT SECONDS\n");
	return 2;
}
