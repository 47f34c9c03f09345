// SPDX-License-Identifier: GPL-2.0
/* echo ADDRESS PORT - a UDP echo server that never sleeps; ends after two minutes without work. */
#include "oracle.h"

int main(int argc, char **argv)
{
	union address a, from;
	int fd;
	double last = seconds();
	char b[2048];

	need(argc == 3);
	a = address4(argv[1], atoi(argv[2]));
	fd = must(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
	must(bind(fd, &a.sa, sizeof(a.in)));
	for (unsigned int turn = 0;; turn++) {
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(fd, b, sizeof(b), 0, &from.sa, &len);

		if (n >= 0)
			sendto(fd, b, n, 0, &from.sa, len);
		if (turn % 1024)
			continue;
		if (n >= 0)
			last = seconds();
		else if (seconds() - last > 120)
			return 0;
	}
}
