// SPDX-License-Identifier: GPL-2.0
/*
 * workset - switching between two processes that each use 64 KB
 *
 *	workset SECONDS
 *
 * A byte goes back and forth over two UDP sockets of the same stack; between, each
 * process walks its 64 KB. Prints the time of one switch, walk included, and that of
 * the walk alone.
 */
#include "wire.h"
#include <sys/wait.h>

#define SET	(64 * 1024)	/* bytes, as in the paper */

static volatile char set[SET];

static void walk(void)
{
	for (int i = 0; i < SET; i += 64)
		set[i]++;
}

static int bound(struct sockaddr_in *a)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t len = sizeof(*a);

	*a = address("127.0.0.1", "0");
	if (fd < 0 || bind(fd, (struct sockaddr *)a, len) ||
	    getsockname(fd, (struct sockaddr *)a, &len))
		die("bind");
	return fd;
}

/* 'q' ends the other side. */
static char turn(int fd, char say)
{
	char b = say;

	if (say && send(fd, &b, 1, 0) != 1)
		die("send");
	if (say == 'q')
		return 0;
	if (recv(fd, &b, 1, 0) != 1)
		die("recv");
	walk();
	return b;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a, b;
	int one = bound(&a), two = bound(&b), status;
	uint64_t start, length, t, last;
	struct sample s;
	double walked;
	pid_t child;

	if (argc != 2)
		return 2;
	length = atof(argv[1]) * NS;
	if (connect(one, (struct sockaddr *)&b, sizeof(b)) ||
	    connect(two, (struct sockaddr *)&a, sizeof(a)))
		die("connect");
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		char said = turn(two, 0);

		while (said != 'q')
			said = turn(two, 'x');
		_exit(0);
	}
	sample_init(&s);
	for (start = now_ns(); now_ns() - start < length / 5;)
		turn(one, 'x');
	start = last = now_ns();
	do {
		turn(one, 'x');
		t = now_ns();
		sample_add(&s, (t - last) / 2e3);
		last = t;
	} while (t - start < length);
	turn(one, 'q');
	waitpid(child, &status, 0);

	start = now_ns();
	for (int i = 0; i < 1000; i++)
		walk();
	walked = (now_ns() - start) / 1e6;
	out("switch", sample_at(&s, 0.5));
	out("p99", sample_at(&s, 0.99));
	out("walk", walked);
	return status ? 1 : 0;
}
