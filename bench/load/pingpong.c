// SPDX-License-Identifier: GPL-2.0
/*
 * pingpong - round trips of SIZE bytes each way, one at a time
 *
 *	pingpong serve tcp|udp PORT SIZE
 *	pingpong ask tcp|udp ADDRESS PORT SIZE SECONDS [plain|few [GAP]]
 *
 * With "plain" host system calls are not counted: somebody else looks at the machine. With "few"
 * neither, and it ends after SECONDS: on a machine that does other things a round trip may take
 * milliseconds. A percentile is printed where a round trip or more lies above it. With GAP, milliseconds, it sleeps for so long
 * before each round trip, which is timed alone: both ends are asleep then.
 * For UDP a TCP connection to the same port number tells the server when it is over, and
 * datagrams are numbered, as far as there is room, so that a late one is not taken for the
 * next. Where round trips take long it goes on until there are enough of them.
 */
#include "wire.h"
#include <pthread.h>

#define COUNTED	1000	/* round trips whose host system calls are counted */
#define LOST	50000	/* us: what has not come back by then is lost */
#define LONGER	4	/* so many times SECONDS at most */

static char buf[SIZE_MAX_SENT];

static void *end_with(void *arg)
{
	char b;

	read_all(accept_one(*(int *)arg), &b, 1);
	exit(0);
}

static int serve(int udp, const char *port, size_t size)
{
	int listener = serve_on(SOCK_STREAM, port, 1), fd;
	struct sockaddr_in from;
	socklen_t len;

	if (!udp) {
		ready();
		fd = accept_one(listener);
		no_delay(fd);
		while (read_all(fd, buf, size))
			write_all(fd, buf, size);
		return 0;
	}

	pthread_t thread;

	fd = serve_on(SOCK_DGRAM, port, 0);
	if (pthread_create(&thread, NULL, end_with, &listener))
		die("pthread_create");
	ready();
	for (;;) {
		len = sizeof(from);
		ssize_t n = recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len);

		if (n < 0)
			die("recvfrom");
		if (sendto(fd, buf, n, 0, (struct sockaddr *)&from, len) != n)
			die("sendto");
	}
}

/* One round trip; 0 for a datagram that was lost. */
static int trip(int fd, int udp, size_t size)
{
	static uint64_t number;
	size_t digits = size < sizeof(number) ? size : sizeof(number);

	if (!udp) {
		write_all(fd, buf, size);
		if (!read_all(fd, buf, size)) {
			fprintf(stderr, "the server hung up\n");
			exit(1);
		}
		return 1;
	}
	number++;
	memcpy(buf, &number, digits);
	if (send(fd, buf, size, 0) != (ssize_t)size)
		die("send");
	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), 0);

		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			die("recv");
		if (n == (ssize_t)size && !memcmp(buf, &number, digits))
			return 1;
	}
}

int main(int argc, char **argv)
{
	int udp = argc > 2 && !strcmp(argv[2], "udp");

	if (argc == 5 && !strcmp(argv[1], "serve"))
		return serve(udp, argv[3], atoi(argv[4]));
	if (argc < 7 || argc > 9 || strcmp(argv[1], "ask")) {
		fprintf(stderr, "usage: see the head of pingpong.c\n");
		return 2;
	}

	size_t size = atoi(argv[5]), lost = 0, warm = 0;
	uint64_t length = atof(argv[6]) * NS, start, t, last;
	int control = udp ? connect_to(SOCK_STREAM, argv[3], argv[4]) : -1;
	int fd = connect_to(udp ? SOCK_DGRAM : SOCK_STREAM, argv[3], argv[4]);
	struct timeval patience = { .tv_usec = LOST };
	struct sample s;
	double calls;
	int counter, few = argc >= 8 && !strcmp(argv[7], "few");
	useconds_t gap = argc == 9 ? atof(argv[8]) * 1e3 : 0;

	if (udp)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	else
		no_delay(fd);
	sample_init(&s);
	for (start = now_ns(); now_ns() - start < length / 5; warm++)
		trip(fd, udp, size);
	start = last = now_ns();
	do {
		if (gap) {
			usleep(gap);
			last = now_ns();
		}
		int whole = trip(fd, udp, size);

		t = now_ns();
		if (whole)
			sample_add(&s, (t - last) / 1e3);
		else
			lost++;
		last = t;
	} while (t - start < length ||
		 (!few && s.seen < ENOUGH_FOR_P99 && t - start < LONGER * length));

	if (few) {
		if (s.seen >= 20)
			out("p90", sample_at(&s, 0.9));
	} else if (argc >= 8) {
		out("trips", warm + s.seen + lost);
	} else {
		counter = host_calls_open();
		calls = host_calls(counter);
		for (int i = 0; i < COUNTED; i++)
			trip(fd, udp, size);
		if (counter >= 0)
			out("host_calls", (host_calls(counter) - calls - 1) / COUNTED);
		host_calls_close(counter);
	}
	out("rate", s.seen * 1e9 / (t - start));
	out("p50", sample_at(&s, 0.5));
	if (!few)
		out("p99", sample_p99(&s));
	else if (s.seen >= 100)
		out("p99", sample_at(&s, 0.99));
	out("lost", lost);
	if (control >= 0)
		write_all(control, "x", 1);
	return 0;
}
