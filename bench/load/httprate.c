// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * httprate - HTTP requests at a given rate, whatever the answers do
 *
 *	httprate ADDRESS PORT PATH RATE CONNECTIONS SECONDS
 *
 * An open loop: request i is due at start + i / RATE, and its reply time counts from
 * then, so that a server that falls behind shows. Keep-alive connections take turns;
 * a request that finds none free waits for one, and one that has not begun when the
 * time is over is not counted as answered. Answers of the first quarter do not count.
 */
#include "wire.h"
#include <sys/epoll.h>

#define ANSWER	(1 << 17)	/* bytes: more than one answer */

struct conn {
	int fd;
	uint64_t due;		/* ns; 0: free */
	size_t got, want;	/* bytes of the answer; want is 0 until its head is read */
	char head[1024];
};

static char request[512], buf[ANSWER];
static int request_len;

static void begin(struct conn *c, uint64_t due)
{
	c->due = due;
	c->got = c->want = 0;
	write_all(c->fd, request, request_len);
}

/* Takes in what came; 1 when the answer is whole. */
static int take(struct conn *c)
{
	ssize_t n = read(c->fd, buf, sizeof(buf));
	char *end, *length;
	size_t room;

	if (n <= 0) {
		fprintf(stderr, "the server hung up\n");
		exit(1);
	}
	if (!c->want) {
		room = sizeof(c->head) - 1 - c->got;
		room = room < (size_t)n ? room : (size_t)n;
		memcpy(c->head + c->got, buf, room);
		c->head[c->got + room] = 0;
		end = strstr(c->head, "\r\n\r\n");
		length = strcasestr(c->head, "\r\nContent-Length:");
		if (end && (!length || strncmp(c->head, "HTTP/1.1 200", 12))) {
			fprintf(stderr, "unexpected answer: %.40s\n", c->head);
			exit(1);
		}
		if (end)
			c->want = end + 4 - c->head + strtoul(length + 17, NULL, 10);
	}
	c->got += n;
	return c->want && c->got >= c->want;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr, "usage: see the head of httprate.c\n");
		return 2;
	}

	double rate = atof(argv[4]);
	int count = atoi(argv[5]), ep = epoll_create1(0), nfree = count;
	uint64_t length = atof(argv[6]) * NS, start, counted, t, begun = 0, answered = 0;
	struct conn *conns = calloc(count, sizeof(*conns));
	struct conn **idle = calloc(count, sizeof(*idle));
	struct epoll_event e[64];
	struct sample s;

	request_len = snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n",
			       argv[3], argv[1]);
	sample_init(&s);
	for (int i = 0; i < count; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = &conns[i] };

		conns[i].fd = connect_to(SOCK_STREAM, argv[1], argv[2]);
		no_delay(conns[i].fd);
		if (epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &ev))
			die("epoll_ctl");
		idle[i] = &conns[i];
	}
	start = now_ns();
	counted = start + length / 4;
	for (;;) {
		uint64_t due = start + begun * (NS / rate);
		struct timespec patience = { 0 };
		int n;

		t = now_ns();
		if (t - start >= length)
			break;
		while (nfree && due <= t) {
			begin(idle[--nfree], due);
			due = start + ++begun * (NS / rate);
		}
		/* With none free only an answer helps; else sleep until the next is due. */
		t = now_ns();
		if (!nfree)
			patience.tv_nsec = 50000000;
		else if (due > t)
			patience.tv_nsec = due - t < 50000000 ? due - t : 50000000;
		n = syscall(SYS_epoll_pwait2, ep, e, 64, &patience, NULL, 0);
		if (n < 0)
			die("epoll_pwait2");
		for (int i = 0; i < n; i++) {
			struct conn *c = e[i].data.ptr;

			if (!take(c))
				continue;
			idle[nfree++] = c;
			t = now_ns();
			if (t < counted)
				continue;
			sample_add(&s, (t - c->due) / 1e3);
			answered++;
		}
	}
	out("replies", answered * 1e9 / (t - counted));
	out("begun", begun);
	out("answered", 100 * answered / (rate * (t - counted) / NS));
	out("p50", sample_at(&s, 0.5));
	out("p99", sample_p99(&s));
	return 0;
}
