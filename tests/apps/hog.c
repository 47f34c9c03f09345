// SPDX-License-Identifier: GPL-2.0
/*
 * hog.c - takes all the memory that its node has, by rings of packet sockets, the large ones
 * first, until the node says no to the smallest; holds it for a while, gives it back, and
 * looks whether there is some "again"
 *
 *	hog [MILLISECONDS]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKETS	4000

static int fds[SOCKETS], n;

/* A ring of that many bytes, in blocks of at most 64 KiB. */
static int take(unsigned int bytes)
{
	unsigned int block = bytes < 65536 ? bytes : 65536;
	struct tpacket_req req = {
		.tp_block_size = block, .tp_block_nr = bytes / block,
		.tp_frame_size = 2048, .tp_frame_nr = bytes / 2048,
	};
	int fd = n < SOCKETS ? socket(AF_PACKET, SOCK_RAW, 0) : -1;

	if (fd < 0)
		return -1;
	fds[n++] = fd;
	return setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &req, sizeof(req));
}

int main(int argc, char **argv)
{
	struct rlimit lim = { SOCKETS + 50, SOCKETS + 50 };
	unsigned int bytes;
	int error = 0;

	if (setrlimit(RLIMIT_NOFILE, &lim))
		return perror("setrlimit"), 1;
	for (bytes = 8 << 20; bytes >= 4096; bytes /= 4)
		while (!take(bytes))
			;
	error = errno;
	printf("%s\n", strerror(error));
	fflush(stdout);
	usleep(1000 * (argc > 1 ? atoi(argv[1]) : 0));
	while (n)
		close(fds[--n]);
	puts(!take(8 << 20) ? "again" : strerror(errno));
	return 0;
}
