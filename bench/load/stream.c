// SPDX-License-Identifier: GPL-2.0
/*
 * stream - a TCP stream in one direction, in writes of SIZE bytes
 *
 *	stream serve PORT [copy|drop]
 *	stream ask ADDRESS PORT SIZE SECONDS [back]
 *
 * The receiver's count is what is reported. With "back" the server sends. With "drop" it
 * has its system throw away what came, without a copy.
 */
#include "wire.h"

static char buf[SIZE_MAX_SENT];

struct order {
	uint32_t size;		/* bytes of a write */
	uint32_t back;		/* 1: the server sends */
	uint64_t ns;
};

struct result {
	uint64_t bytes, ns;
};

static void send_for(int fd, const struct order *o)
{
	uint64_t end = now_ns() + o->ns;

	while (now_ns() < end)
		write_all(fd, buf, o->size);
	if (shutdown(fd, SHUT_WR))
		die("shutdown");
}

/* Bytes and time from the first that came to the last. */
static struct result receive(int fd, int flags)
{
	struct result r = { 0 };
	uint64_t start = 0;

	for (;;) {
		ssize_t n = recv(fd, buf, sizeof(buf), flags);

		if (n < 0)
			die("read");
		if (!n)
			break;
		if (!start)
			start = now_ns();
		else
			r.bytes += n;
	}
	r.ns = now_ns() - start;
	return r;
}

static int serve(const char *port, int flags)
{
	int listener = serve_on(SOCK_STREAM, port, 1), fd;
	struct result r;
	struct order o;

	ready();
	fd = accept_one(listener);
	if (!read_all(fd, &o, sizeof(o)))
		return 1;
	if (o.back) {
		send_for(fd, &o);
		read(fd, &r, 1);
		return 0;
	}
	r = receive(fd, flags);
	write_all(fd, &r, sizeof(r));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(argv[2], 0);
	if (argc == 4 && !strcmp(argv[1], "serve") && !strcmp(argv[3], "copy"))
		return serve(argv[2], 0);
	if (argc == 4 && !strcmp(argv[1], "serve") && !strcmp(argv[3], "drop"))
		return serve(argv[2], MSG_TRUNC);
	if ((argc != 6 && argc != 7) || strcmp(argv[1], "ask")) {
		fprintf(stderr, "usage: see the head of stream.c\n");
		return 2;
	}

	struct order o = {
		.size = atoi(argv[4]),
		.back = argc == 7 && !strcmp(argv[6], "back"),
		.ns = atof(argv[5]) * NS,
	};
	int fd = connect_to(SOCK_STREAM, argv[2], argv[3]);
	double busy = machine_busy();
	struct result r;

	write_all(fd, &o, sizeof(o));
	if (o.back) {
		r = receive(fd, 0);
	} else {
		send_for(fd, &o);
		if (!read_all(fd, &r, sizeof(r))) {
			fprintf(stderr, "the server hung up\n");
			return 1;
		}
	}
	if (!r.bytes || !r.ns) {
		fprintf(stderr, "nothing came through\n");
		return 1;
	}
	out("gbit", r.bytes * 8.0 / r.ns);
	out("cpu_ns_per_kib", (machine_busy() - busy) * 1e9 / (r.bytes / 1024.0));
	return 0;
}
