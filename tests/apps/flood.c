// SPDX-License-Identifier: GPL-2.0
/*
 * flood - datagrams as fast as they can be sent, and how many of them are read
 *
 *	flood serve ADDRESS PORT
 *	flood send ADDRESS PORT COUNT	prints the share that was read, in percent
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define SIZE	64	/* bytes of a datagram */
#define TRIES	50	/* of 100 ms: the question has to get through, too */

static void serve(int fd, struct sockaddr_in *a)
{
	struct sockaddr_in from;
	unsigned int count = 0;
	char buf[SIZE];

	if (bind(fd, (struct sockaddr *)a, sizeof(*a))) {
		perror("bind");
		exit(1);
	}
	for (;;) {
		socklen_t len = sizeof(from);

		if (recvfrom(fd, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) < 0) {
			perror("recvfrom");
			exit(1);
		}
		if (buf[0] == '?')
			sendto(fd, &count, sizeof(count), 0, (struct sockaddr *)&from, len);
		else
			count++;
	}
}

int main(int argc, char **argv)
{
	struct timeval patience = { .tv_usec = 100000 };
	struct sockaddr_in a = { .sin_family = AF_INET };
	unsigned int read = 0, count;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char buf[SIZE] = "x";

	if (argc < 4 || fd < 0 || !inet_aton(argv[2], &a.sin_addr))
		return 2;
	a.sin_port = htons(atoi(argv[3]));
	if (!strcmp(argv[1], "serve"))
		serve(fd, &a);
	if (argc != 5 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		return 2;
	count = atoi(argv[4]);
	for (unsigned int i = 0; i < count; i++) {
		if (send(fd, buf, sizeof(buf), 0) != sizeof(buf)) {
			perror("send");
			return 1;
		}
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	for (int i = 0; i < TRIES; i++) {
		send(fd, "?", 1, 0);
		if (recv(fd, &read, sizeof(read), 0) == sizeof(read)) {
			printf("%u\n", (unsigned int)(100ull * read / count));
			return 0;
		}
	}
	fprintf(stderr, "no answer\n");
	return 1;
}
