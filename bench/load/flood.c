// SPDX-License-Identifier: GPL-2.0
/*
 * flood - datagrams of SIZE bytes in one direction
 *
 *	flood serve PORT
 *	flood ask ADDRESS PORT SIZE SECONDS [BURST]
 *
 * Without BURST the sender sends as fast as it can, and what the receiver counts is
 * reported beside what was sent. With BURST it sends so many, asks how many have come, and so
 * on: the time of the sends alone is reported, undisturbed by a queue that is full. To wait until all
 * have come would measure whether the receiver sleeps by then. Where datagrams are lost in the end, the time is of something else: an error.
 * A TCP connection to the same port number carries orders and counts.
 */
#include "wire.h"
#include <pthread.h>

#define COUNTED	200	/* bursts whose host system calls are counted */
#define ARRIVAL	(20 * 1000 * 1000)	/* ns: what has not come by then, does not */
#define ENOUGH	99.0	/* % of the bursts' datagrams that have to come */

static char buf[65536];
static int data;		/* the server's datagram socket */

struct count {
	uint64_t packets, first, last;	/* ns */
};
static struct count count;

/* Answers each byte on the control connection with the counts so far. */
static void *answer(void *arg)
{
	int fd = accept_one(*(int *)arg);
	char b;

	no_delay(fd);
	while (read_all(fd, &b, 1))
		write_all(fd, &count, sizeof(count));
	exit(0);
}

static __attribute__((noreturn)) void serve(const char *port)
{
	int listener = serve_on(SOCK_STREAM, port, 1);
	pthread_t thread;

	data = serve_on(SOCK_DGRAM, port, 0);
	receive_buffer(data);
	if (pthread_create(&thread, NULL, answer, &listener))
		die("pthread_create");
	ready();
	for (;;) {
		if (recv(data, buf, sizeof(buf), 0) < 0)
			die("recv");
		if (!(count.packets % 16) || !count.first) {
			count.last = now_ns();
			if (!count.first)
				count.first = count.last;
		}
		__atomic_store_n(&count.packets, count.packets + 1, __ATOMIC_RELEASE);
	}
}

static struct count ask(int control)
{
	struct count c;

	write_all(control, "?", 1);
	if (!read_all(control, &c, sizeof(c))) {
		fprintf(stderr, "the server hung up\n");
		exit(1);
	}
	return c;
}

static void send_one(int fd, size_t size)
{
	/* A refused datagram is as good as a lost one; the receiver counts. */
	if (send(fd, buf, size, 0) != (ssize_t)size && errno != ENOBUFS && errno != ECONNREFUSED)
		die("send");
}

/* Until the receiver has all, or nothing more comes; what it has. */
static uint64_t arrived(int control, uint64_t wanted)
{
	uint64_t start = now_ns(), packets;

	do
		packets = ask(control).packets;
	while (packets < wanted && now_ns() - start < ARRIVAL);
	return packets;
}

static void send_burst(int fd, size_t size, int burst)
{
	for (int i = 0; i < burst; i++)
		send_one(fd, size);
}

static void bursts(int fd, int control, size_t size, uint64_t length, int burst)
{
	uint64_t before = ask(control).packets, sent = 0, start, t;
	double calls = 0, calls_before, delivered;
	struct sample s;
	int counter;

	sample_init(&s);
	start = now_ns();
	do {
		t = now_ns();
		send_burst(fd, size, burst);
		sample_add(&s, (double)(now_ns() - t) / burst);
		sent += burst;
		ask(control);
	} while (now_ns() - start < length);
	delivered = 100.0 * (arrived(control, before + sent) - before) / sent;
	if (delivered < ENOUGH) {
		fprintf(stderr, "only %.1f %% of the datagrams came\n", delivered);
		exit(1);
	}
	out("send_ns", sample_at(&s, 0.5));
	out("send_p99_ns", sample_at(&s, 0.99));
	out("delivered", delivered);

	counter = host_calls_open();
	for (int n = 0; n < COUNTED; n++) {
		calls_before = host_calls(counter);
		send_burst(fd, size, burst);
		calls += host_calls(counter) - calls_before - 1;
		ask(control);
	}
	if (counter >= 0)
		out("host_calls", calls / burst / COUNTED);
	host_calls_close(counter);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	if ((argc != 6 && argc != 7) || strcmp(argv[1], "ask")) {
		fprintf(stderr, "usage: see the head of flood.c\n");
		return 2;
	}

	size_t size = atoi(argv[4]);
	uint64_t length = atof(argv[5]) * NS, start, sent = 0, t;
	int control = connect_to(SOCK_STREAM, argv[2], argv[3]);
	int fd = connect_to(SOCK_DGRAM, argv[2], argv[3]);
	struct count before, after;

	no_delay(control);
	if (argc == 7) {
		bursts(fd, control, size, length, atoi(argv[6]));
		return 0;
	}

	for (start = now_ns(); now_ns() - start < length / 5;)
		send_one(fd, size);
	before = ask(control);
	start = now_ns();
	do {
		for (int i = 0; i < 16; i++)
			send_one(fd, size);
		sent += 16;
		t = now_ns();
	} while (t - start < length);
	after = ask(control);
	out("sent", sent * 1e9 / (t - start));
	if (after.last <= before.last) {
		fprintf(stderr, "nothing came through\n");
		return 1;
	}
	out("received", (after.packets - before.packets) * 1e9 / (after.last - before.last));
	out("gbit", size * 8.0 * (after.packets - before.packets) / (after.last - before.last));
	out("delivered", 100.0 * (after.packets - before.packets) / sent);
	return 0;
}
