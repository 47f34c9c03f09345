// SPDX-License-Identifier: GPL-2.0
/*
 * pairs [ADDRESS PORT] - 10,000 pairs of sendto and recvfrom, on loopback or with an
 * echo server; before and after the counted phase it makes a host call that can be
 * told from others: getpriority(PRIO_PROCESS, 4711) and (.., 4712).
 */
#include "oracle.h"

#define PAIRS 10000

static void mark(int which)
{
	getpriority(PRIO_PROCESS, which);
}

int main(int argc, char **argv)
{
	int fd = bound(AF_INET, SOCK_DGRAM), done = 0;
	union address to = loopback(AF_INET, local_port(fd));
	socklen_t len;
	char b[64] = "";

	if (argc == 3) {
		close(fd);
		fd = must(socket(AF_INET, SOCK_DGRAM, 0));
		to = address4(argv[1], atoi(argv[2]));
	}
	for (int i = 0; i < 200 + PAIRS; i++) {
		union address from;

		if (i == 200)
			mark(4711);
		need(sendto(fd, b, sizeof(b), 0, &to.sa, sizeof(to.in)) == sizeof(b));
		len = sizeof(from);
		need(recvfrom(fd, b, sizeof(b), 0, &from.sa, &len) == sizeof(b));
		done++;
	}
	mark(4712);
	say("%d pairs", done - 200);
	return 0;
}
