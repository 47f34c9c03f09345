// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
/*
 * httpd - a kilobyte from memory for each HTTP request: httpd PORT
 *
 * One thread and one epoll, no files: what is measured is the network. For the peers
 * that run no programs there is the like in bench/peers.
 */
#include "wire.h"
#include <sys/epoll.h>

#define EVENTS	256
#define BODY	1024

/* What is there of a request that ends with the next bytes: how much of \r\n\r\n. */
static unsigned char matched[1 << 16];

/* Requests that end within these bytes. */
static int requests(int fd, const char *at, ssize_t n)
{
	static const char end[] = "\r\n\r\n";
	int count = 0;

	while (n--) {
		char c = *at++;

		matched[fd] = c == end[matched[fd]] ? matched[fd] + 1 : c == end[0];
		if (matched[fd] == 4) {
			matched[fd] = 0;
			count++;
		}
	}
	return count;
}

int main(int argc, char **argv)
{
	struct epoll_event e[EVENTS], watch = { .events = EPOLLIN };
	char answer[2048], buf[4096];
	int listener, ep = epoll_create1(0), len;

	if (argc != 2) {
		fprintf(stderr, "usage: httpd PORT\n");
		return 2;
	}
	len = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
	memset(answer + len, 'x', BODY);
	len += BODY;
	listener = serve_on(SOCK_STREAM, argv[1], 4096);
	fcntl(listener, F_SETFL, O_NONBLOCK);
	watch.data.fd = listener;
	if (epoll_ctl(ep, EPOLL_CTL_ADD, listener, &watch))
		die("epoll_ctl");
	ready();
	for (;;) {
		int n = epoll_wait(ep, e, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			int fd = e[i].data.fd, asked;
			ssize_t got;

			if (fd == listener) {
				while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
					no_delay(fd);
					watch.data.fd = fd;
					if (fd >= (int)sizeof(matched) ||
					    epoll_ctl(ep, EPOLL_CTL_ADD, fd, &watch))
						die("epoll_ctl");
					matched[fd] = 0;
				}
				continue;
			}
			got = read(fd, buf, sizeof(buf));
			if (got <= 0) {
				close(fd);
				continue;
			}
			for (asked = requests(fd, buf, got); asked; asked--)
				write_all(fd, answer, len);
		}
	}
}
