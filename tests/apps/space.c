// SPDX-License-Identifier: GPL-2.0
/*
 * space.c ADDRESS - a server and its client, threads of one process; the client forks, and the child answers
 *
 * Compiled with -fsanitize=thread, whose runtime refuses to start where a mapping lies outside of what it takes for a program's.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES	(1 << 20)

static struct sockaddr_in at;
static socklen_t len = sizeof(at);

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void *client(void *arg)
{
	static unsigned char data[BYTES];
	int s = socket(AF_INET, SOCK_STREAM, 0), status;
	size_t done = 0;
	pid_t child;

	(void)arg;
	for (size_t i = 0; i < BYTES; i++)
		data[i] = i * 7 + i / 4096;
	if (s < 0 || connect(s, (struct sockaddr *)&at, len))
		die("connect");
	child = fork();
	if (!child) {
		while (done < BYTES) {
			ssize_t n = write(s, data + done, BYTES - done);

			if (n <= 0)
				_exit(1);
			done += n;
		}
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		die("child");
	close(s);
	return NULL;
}

int main(int argc, char **argv)
{
	int s = socket(AF_INET, SOCK_STREAM, 0), c;
	unsigned char buf[5000];
	size_t got = 0, bad = 0;
	pthread_t thread;
	ssize_t n;

	at.sin_family = AF_INET;
	if (argc != 2 || !inet_aton(argv[1], &at.sin_addr))
		return 2;
	if (s < 0 || bind(s, (struct sockaddr *)&at, len) || listen(s, 1) || getsockname(s, (struct sockaddr *)&at, &len))
		die("bind");
	pthread_create(&thread, NULL, client, NULL);
	c = accept(s, NULL, NULL);
	while ((n = read(c, buf, sizeof(buf))) > 0)
		for (ssize_t i = 0; i < n; i++, got++)
			bad += buf[i] != (unsigned char)(got * 7 + got / 4096);
	pthread_join(thread, NULL);
	printf("%zu bytes, %zu wrong\n", got, bad);
	return 0;
}
