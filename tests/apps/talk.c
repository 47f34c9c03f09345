// SPDX-License-Identifier: GPL-2.0
/*
 * talk serve PORT              echoes what comes over TCP, a child for each connection
 * talk send HOST PORT FILE     sends a file, counts the bytes that come back unchanged
 *
 * For libraries other than glibc: nothing but POSIX.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void echo(int fd)
{
	static char b[65536];
	ssize_t n;

	while ((n = read(fd, b, sizeof(b))) > 0)
		for (ssize_t done = 0, w; done < n; done += w) {
			w = write(fd, b + done, n - done);
			if (w < 0)
				die("write");
		}
	exit(n < 0);
}

static void serve(const char *port)
{
	struct addrinfo hints = {
		.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE
	}, *found;
	int listener, one = 1;

	if (getaddrinfo(NULL, port, &hints, &found))
		die("getaddrinfo");
	listener = socket(found->ai_family, found->ai_socktype, 0);
	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(listener, found->ai_addr, found->ai_addrlen) || listen(listener, 16))
		die("listen");
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			die("accept");
		switch (fork()) {
		case -1:
			die("fork");
		case 0:
			close(listener);
			echo(fd);
		}
		close(fd);
	}
}

static void send_file(const char *host, const char *port, const char *path)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	struct stat st;
	size_t sent = 0, same = 0;
	char *data, b[65536];
	int fd, file = open(path, O_RDONLY);

	if (file < 0 || fstat(file, &st))
		die(path);
	data = malloc(st.st_size);
	if (!data || read(file, data, st.st_size) != st.st_size)
		die("read");
	if (getaddrinfo(host, port, &hints, &found))
		die("getaddrinfo");
	fd = socket(found->ai_family, found->ai_socktype, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		die("connect");
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
	for (size_t got = 0;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN | (sent < st.st_size ? POLLOUT : 0) };
		ssize_t n;

		if (poll(&p, 1, 20000) <= 0)
			die("poll");
		if (p.revents & POLLOUT) {
			n = send(fd, data + sent, st.st_size - sent, MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				die("send");
			if (n > 0)
				sent += n;
			if (sent == st.st_size && shutdown(fd, SHUT_WR))
				die("shutdown");
		}
		if (!(p.revents & (POLLIN | POLLHUP)))
			continue;
		n = read(fd, b, sizeof(b));
		if (n < 0 && errno != EAGAIN)
			die("read");
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++)
			same += got + i < st.st_size && b[i] == data[got + i];
		got += n > 0 ? n : 0;
	}
	printf("%zu of %lld came back\n", same, (long long)st.st_size);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "send"))
		send_file(argv[2], argv[3], argv[4]);
	else
		return 2;
	return 0;
}
