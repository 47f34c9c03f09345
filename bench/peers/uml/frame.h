/* SPDX-License-Identifier: GPL-2.0 */
/* frame.h - what crosses between call and agent */
#ifndef FRAME_H
#define FRAME_H

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_PORT	7	/* the agent's */

#define FRAME_OUT	'o'	/* standard output */
#define FRAME_ERR	'e'	/* standard error */
#define FRAME_STATUS	's'	/* the exit status, an int; the last frame */

/* Followed by that many bytes. */
struct frame {
	uint32_t kind, len;
};

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(125);
}

static inline void frame_write(int fd, const void *from, size_t n)
{
	for (size_t put = 0; put < n;) {
		ssize_t w = write(fd, (const char *)from + put, n - put);

		if (w <= 0)
			die("write");
		put += w;
	}
}

static inline void frame_put(int fd, char kind, const void *from, size_t n)
{
	char buf[sizeof(struct frame) + 4096];
	struct frame f = { kind, n };

	memcpy(buf, &f, sizeof(f));
	memcpy(buf + sizeof(f), from, n);
	frame_write(fd, buf, sizeof(f) + n);
}

#endif
