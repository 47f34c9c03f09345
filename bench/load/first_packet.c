// SPDX-License-Identifier: GPL-2.0
/* first_packet - a datagram to oneself on loopback, then a line; with "stay" it goes on then */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char b;

	if (bind(fd, (struct sockaddr *)&a, len) || getsockname(fd, (struct sockaddr *)&a, &len) ||
	    sendto(fd, "x", 1, 0, (struct sockaddr *)&a, len) != 1 || recv(fd, &b, 1, 0) != 1) {
		perror("first packet");
		return 1;
	}
	puts("received");
	fflush(stdout);
	if (argc > 1 && !strcmp(argv[1], "stay"))
		pause();
	return 0;
}
