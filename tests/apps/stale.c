// SPDX-License-Identifier: GPL-2.0
/*
 * stale N - executes itself N times, each time from another thread than the first, then exchanges bytes with a
 * child for two seconds
 *
 * Each time the first thread dies, and the one that executes gets its number: so the deaths of this process's number
 * are many, and it lives. Says "busy PID", and "end".
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) do { if ((x) < 0) { perror(#x); exit(1); } } while (0)

static void *next(void *left)
{
	char text[16];

	snprintf(text, sizeof(text), "%ld", (long)left);
	execl("/proc/self/exe", "stale", text, (char *)NULL);
	perror("execl");
	exit(1);
}

static void talk(int fd)
{
	time_t end = time(NULL) + 3;
	char byte = 0;

	while (time(NULL) < end) {
		if (write(fd, &byte, 1) != 1)
			exit(2);
		if (read(fd, &byte, 1) != 1)
			exit(3);
	}
}

static void answer(int fd)
{
	char byte;

	while (read(fd, &byte, 1) == 1 && write(fd, &byte, 1) == 1)
		;
}

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 0;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(at);
	int listener, here, there;
	pthread_t thread;
	pid_t child;

	if (left > 0) {
		pthread_create(&thread, NULL, next, (void *)(left - 1));
		for (;;)
			pause();
	}
	CHECK(listener = socket(AF_INET, SOCK_STREAM, 0));
	CHECK(bind(listener, (void *)&at, sizeof(at)));
	CHECK(listen(listener, 1));
	CHECK(getsockname(listener, (void *)&at, &length));
	CHECK(here = socket(AF_INET, SOCK_STREAM, 0));
	CHECK(connect(here, (void *)&at, sizeof(at)));
	CHECK(there = accept(listener, NULL, NULL));
	printf("busy %d\n", getpid());
	fflush(stdout);
	signal(SIGPIPE, SIG_IGN);
	CHECK(child = fork());
	if (!child) {
		close(here);
		answer(there);
		_exit(0);
	}
	close(there);
	talk(here);
	printf("end\n");
	return 0;
}
