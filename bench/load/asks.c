// SPDX-License-Identifier: GPL-2.0
/*
 * asks - requests over many connections, one under way on each, by one thread
 *
 *	asks memcached|mqtt|echo ADDRESS PORT CONNECTIONS SECONDS
 *	asks serve PORT
 *
 * memcached: get of a value of 100 bytes. mqtt: each connection publishes to a subject of its own, which
 * it has subscribed to, and gets it back. echo: a connection for each request, answered by
 * `asks serve`, which forks a process for each. An answer is as long as the first one was.
 */
#include "wire.h"
#include <signal.h>
#include <sys/epoll.h>

#define CONNECTIONS_MAX	1024
#define EVENTS		64
#define MESSAGE		64	/* bytes that are echoed, or published */
#define VALUE		100	/* bytes of a value of memcached's */

struct conn {
	int fd;
	size_t got;
	uint64_t since;
	char request[128];
	size_t length, answer;	/* bytes */
};

static struct sockaddr_in to;
static struct conn conns[CONNECTIONS_MAX];
static struct sample times;
static int ep, once;

static int serve(const char *port)
{
	int listener = serve_on(SOCK_STREAM, port, 1024);

	signal(SIGCHLD, SIG_IGN);
	ready();
	for (;;) {
		int fd = accept_one(listener);
		pid_t pid = fork();
		char b[MESSAGE];

		if (pid < 0)
			die("fork");
		if (!pid) {
			close(listener);
			if (read_all(fd, b, sizeof(b)))
				write_all(fd, b, sizeof(b));
			_exit(0);
		}
		close(fd);
	}
}

static void open_conn(struct conn *c)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0)
		die("socket");
	if (connect(c->fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	no_delay(c->fd);
	if (epoll_ctl(ep, EPOLL_CTL_ADD, c->fd, &e))
		die("epoll_ctl");
}

static void begin(struct conn *c)
{
	c->since = now_ns();
	c->got = 0;
	if (once)
		open_conn(c);
	write_all(c->fd, c->request, c->length);
}

/* What a server says to `text`, at least `n` bytes of it. */
static void say(struct conn *c, const void *text, size_t length, size_t n)
{
	char b[256];

	write_all(c->fd, text, length);
	if (!read_all(c->fd, b, n))
		die("the server hung up");
}

static void prepare_memcached(struct conn *c, int number)
{
	char text[VALUE + 64];
	int n = snprintf(text, sizeof(text), "set key%04d 0 0 %d\r\n", number, VALUE);

	memset(text + n, 'x', VALUE);
	memcpy(text + n + VALUE, "\r\n", 2);
	open_conn(c);
	say(c, text, n + VALUE + 2, strlen("STORED\r\n"));
	c->length = snprintf(c->request, sizeof(c->request), "get key%04d\r\n", number);
	c->answer = snprintf(text, sizeof(text), "VALUE key%04d 0 %d\r\n", number, VALUE) + VALUE +
		    strlen("\r\nEND\r\n");
}

#define SUBJECT	"t0000"		/* of so many characters each is */

static void prepare_mqtt(struct conn *c, int number)
{
	char text[64] = "\x10\x11\x00\x04MQTT\x04\x02\x00\x00\x00\x05", subject[8];

	snprintf(subject, sizeof(subject), "t%04d", number);
	open_conn(c);
	memcpy(text + 14, subject, 5);
	say(c, text, 19, 4);
	memcpy(text, "\x82\x0a\x00\x01\x00\x05", 6);
	memcpy(text + 6, subject, 5);
	text[11] = 0;
	say(c, text, 12, 5);
	/* PUBLISH, at most once: its length, the subject's, the subject, the message. */
	c->request[0] = 0x30;
	c->request[1] = 2 + strlen(SUBJECT) + MESSAGE;
	c->request[2] = 0;
	c->request[3] = strlen(SUBJECT);
	memcpy(c->request + 4, subject, strlen(SUBJECT));
	memset(c->request + 4 + strlen(SUBJECT), 'm', MESSAGE);
	c->length = c->answer = 4 + strlen(SUBJECT) + MESSAGE;
}

static void prepare_echo(struct conn *c, int number)
{
	memset(c->request, 'a' + number % 26, MESSAGE);
	c->length = c->answer = MESSAGE;
}

/* Takes in what came; 1 when the answer is whole. */
static int take(struct conn *c)
{
	char b[512];
	ssize_t n = read(c->fd, b, sizeof(b));

	if (n < 0)
		die("read");
	if (!n) {
		fprintf(stderr, "the server hung up after %zu of %zu bytes\n", c->got, c->answer);
		exit(1);
	}
	c->got += n;
	if (c->got > c->answer) {
		fprintf(stderr, "an answer has %zu bytes, not %zu: %.40s\n", c->got, c->answer, b);
		exit(1);
	}
	return c->got == c->answer;
}

int main(int argc, char **argv)
{
	void (*prepare)(struct conn *c, int number) = NULL;
	struct epoll_event e[EVENTS];
	uint64_t start, length, now;
	int n;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2]);
	if (argc == 6 && !strcmp(argv[1], "memcached"))
		prepare = prepare_memcached;
	if (argc == 6 && !strcmp(argv[1], "mqtt"))
		prepare = prepare_mqtt;
	if (argc == 6 && !strcmp(argv[1], "echo"))
		prepare = prepare_echo;
	n = prepare ? atoi(argv[4]) : 0;
	if (n < 1 || n > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: see the head of asks.c\n");
		return 2;
	}
	once = prepare == prepare_echo;
	to = address(argv[2], argv[3]);
	ep = epoll_create1(0);
	sample_init(&times);
	for (int i = 0; i < n; i++)
		prepare(&conns[i], i);
	length = atof(argv[5]) * NS;
	start = now = now_ns();
	for (int i = 0; i < n; i++)
		begin(&conns[i]);
	while (now - start < length) {
		int found = epoll_wait(ep, e, EVENTS, 1000);

		if (found < 0)
			die("epoll_wait");
		for (int i = 0; i < found; i++) {
			struct conn *c = e[i].data.ptr;

			if (!take(c))
				continue;
			if (once)
				close(c->fd);
			sample_add(&times, (now_ns() - c->since) / 1e3);
			begin(c);
		}
		now = now_ns();
	}
	out("rate", times.seen * 1e9 / (now - start));
	out("p50", sample_at(&times, 0.5));
	return 0;
}
