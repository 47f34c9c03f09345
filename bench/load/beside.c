// SPDX-License-Identifier: GPL-2.0
/*
 * beside - a process that never waits, for another to be measured beside
 *
 *	beside calls ADDRESS		asks for a socket's options
 *	beside sends ADDRESS		sends datagrams that nobody wants
 *
 * It says that it goes on by a line, and does until it is ended.
 */
#include "wire.h"

#define DISCARD	"9"
#define LENGTH	1000	/* bytes of a datagram */

static char buf[LENGTH];

int main(int argc, char **argv)
{
	int sends = argc == 3 && !strcmp(argv[1], "sends"), fd, size;
	struct sockaddr_in to;
	socklen_t len;

	if (!sends && (argc != 3 || strcmp(argv[1], "calls"))) {
		fprintf(stderr, "usage: see the head of beside.c\n");
		return 2;
	}
	to = address(argv[2], DISCARD);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0)
		die("socket");
	ready();
	for (;;) {
		len = sizeof(size);
		if (sends)
			/* A full queue is no reason to stop. */
			sendto(fd, buf, sizeof(buf), 0, (struct sockaddr *)&to, sizeof(to));
		else if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, &len))
			die("getsockopt");
	}
}
