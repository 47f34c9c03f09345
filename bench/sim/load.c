// SPDX-License-Identifier: GPL-2.0
/*
 * load.c - the programs of bench/sim: small, so that what is measured is the simulation
 *
 *	load sink PORT			takes connections, one after the other, and reads all of each
 *	load send HOST PORT BYTES	sends so many bytes on one connection, and ends
 *	load hear PORT COUNT		takes datagrams until so many have come, or none for 2 s; fails if any is missing
 *	load say HOST PORT COUNT US	sends so many datagrams of 64 bytes, so many microseconds apart
 *	load sleep COUNT US		sleeps so often and so long
 *	load call COUNT			makes a call of the node's that does not wait, so often
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BUFFER (256 << 10)
#define DATAGRAM 64
#define PATIENCE_MS 2000

static char buffer[BUFFER];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* A socket at PORT of every address of this host, or connected to HOST. */
static int open_socket(int kind, const char *host, const char *port)
{
	struct addrinfo want = { .ai_family = AF_INET, .ai_socktype = kind, .ai_flags = host ? 0 : AI_PASSIVE };
	struct addrinfo *at;
	int on = 1, fd;

	if (getaddrinfo(host, port, &want, &at)) {
		fprintf(stderr, "load: no host %s\n", host ? host : "here");
		exit(1);
	}
	fd = socket(AF_INET, kind, 0);
	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (host ? connect(fd, at->ai_addr, at->ai_addrlen) : bind(fd, at->ai_addr, at->ai_addrlen))
		fail(host ? "connect" : "bind");
	freeaddrinfo(at);
	return fd;
}

static void nap(long us)
{
	struct timespec time = { us / 1000000, us % 1000000 * 1000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
}

static _Noreturn void sink(const char *port)
{
	int door = open_socket(SOCK_STREAM, NULL, port);

	if (listen(door, 64))
		fail("listen");
	for (;;) {
		int fd = accept(door, NULL, NULL);

		if (fd < 0)
			fail("accept");
		while (read(fd, buffer, BUFFER) > 0)
			;
		close(fd);
	}
}

static int send_all(const char *host, const char *port, long long bytes)
{
	int fd = open_socket(SOCK_STREAM, host, port);

	while (bytes > 0) {
		ssize_t sent = write(fd, buffer, bytes < BUFFER ? bytes : BUFFER);

		if (sent < 0)
			fail("write");
		bytes -= sent;
	}
	/* Until the far side has read it all and closed. */
	shutdown(fd, SHUT_WR);
	return read(fd, buffer, 1) != 0;
}

static int hear(const char *port, long count)
{
	int fd = open_socket(SOCK_DGRAM, NULL, port), room = 8 << 20;
	struct pollfd set = { .fd = fd, .events = POLLIN };
	long heard = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	/* The first one may come late. */
	for (int wait = -1; heard < count && poll(&set, 1, wait) > 0; wait = PATIENCE_MS) {
		while (heard < count && recv(fd, buffer, BUFFER, MSG_DONTWAIT) > 0)
			heard++;
	}
	printf("%ld of %ld\n", heard, count);
	return heard != count;
}

static int say(const char *host, const char *port, long count, long us)
{
	int fd = open_socket(SOCK_DGRAM, host, port);

	for (long i = 0; i < count; i++) {
		if (send(fd, buffer, DATAGRAM, 0) < 0)
			fail("send");
		nap(us);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "sink"))
		sink(argv[2]);
	if (argc == 5 && !strcmp(argv[1], "send"))
		return send_all(argv[2], argv[3], atoll(argv[4]));
	if (argc == 4 && !strcmp(argv[1], "hear"))
		return hear(argv[2], atol(argv[3]));
	if (argc == 6 && !strcmp(argv[1], "say"))
		return say(argv[2], argv[3], atol(argv[4]), atol(argv[5]));
	if (argc == 4 && !strcmp(argv[1], "sleep")) {
		for (long i = atol(argv[2]); i > 0; i--)
			nap(atol(argv[3]));
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "call")) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		for (long i = atol(argv[2]); i > 0; i--) {
			if (fcntl(fd, F_GETFL) < 0)
				fail("fcntl");
		}
		return 0;
	}
	fprintf(stderr, "usage: load sink|send|hear|say|sleep|call ...\n");
	return 2;
}
