// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * conns - many connections at once, each with one byte under way
 *
 *	conns serve PORT
 *	conns ask ADDRESS PORT CONNECTIONS SECONDS
 *
 * One thread and one epoll at each end. Prints transactions a second over all of them,
 * the time of one, and how fast they were connected.
 */
#include "wire.h"
#include <sys/epoll.h>
#include <sys/resource.h>

#define EVENTS	256

static void many_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		die("getrlimit");
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r))
		die("setrlimit");
}

static void watch(int ep, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e))
		die("epoll_ctl");
}

static int serve(const char *port)
{
	int listener = serve_on(SOCK_STREAM, port, 4096), ep = epoll_create1(0), open = 0;
	struct epoll_event e[EVENTS];
	char b[64];

	fcntl(listener, F_SETFL, O_NONBLOCK);
	watch(ep, listener);
	ready();
	for (;;) {
		int n = epoll_wait(ep, e, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd;
			ssize_t got;

			if (fd == listener) {
				while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					no_delay(fd);
					watch(ep, fd);
					open++;
				}
				if (errno != EAGAIN)
					die("accept");
				continue;
			}
			got = read(fd, b, sizeof(b));
			if (got > 0) {
				write_all(fd, b, got);
			} else {
				close(fd);
				if (!--open)
					return 0;
			}
		}
	}
}

int main(int argc, char **argv)
{
	many_files();
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc != 6 || strcmp(argv[1], "ask")) {
		fprintf(stderr, "usage: see the head of conns.c\n");
		return 2;
	}

	int count = atoi(argv[4]), ep = epoll_create1(0), max = 0;
	uint64_t length = atof(argv[5]) * NS, start, t, done = 0, *sent;
	int *fds = calloc(count, sizeof(*fds)), warm = 1;
	struct epoll_event e[EVENTS];
	struct sample s;
	double busy;
	char b;

	sample_init(&s);
	start = now_ns();
	for (int i = 0; i < count; i++) {
		fds[i] = connect_to(SOCK_STREAM, argv[2], argv[3]);
		no_delay(fds[i]);
		watch(ep, fds[i]);
		if (fds[i] > max)
			max = fds[i];
	}
	out("connects", count * 1e9 / (now_ns() - start));
	sent = calloc(max + 1, sizeof(*sent));
	if (!fds || !sent)
		die("calloc");
	for (int i = 0; i < count; i++) {
		sent[fds[i]] = now_ns();
		write_all(fds[i], "x", 1);
	}
	start = now_ns();
	busy = machine_busy();
	do {
		int n = epoll_wait(ep, e, EVENTS, 5000);

		if (n <= 0) {
			fprintf(stderr, "no answer for 5 s\n");
			return 1;
		}
		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd;

			if (read(fd, &b, 1) != 1)
				die("read");
			t = now_ns();
			if (!warm)
				sample_add(&s, (t - sent[fd]) / 1e3);
			done++;
			sent[fd] = t;
			write_all(fd, "x", 1);
		}
		t = now_ns();
		if (warm && t - start > length / 4) {
			warm = 0;
			done = 0;
			busy = machine_busy();
			start = t;
		}
	} while (warm || t - start < length);
	out("rate", done * 1e9 / (t - start));
	out("cpu_us", (machine_busy() - busy) * 1e6 / done);
	out("p50", sample_at(&s, 0.5));
	out("p99", sample_at(&s, 0.99));
	return 0;
}
