// SPDX-License-Identifier: GPL-2.0
/*
 * call - runs a command in a User-mode Linux that an agent serves
 *
 *	call ADDRESS WORD...
 *
 * Its output and its exit status become this program's. Killed, it takes the command
 * with it: the agent sees the connection close.
 */
#include "frame.h"

static int read_all(int fd, void *to, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t r = read(fd, (char *)to + got, n - got);

		if (r <= 0)
			return 0;
		got += r;
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(FRAME_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char buf[4096];
	struct frame f;

	if (argc < 3 || !inet_aton(argv[1], &a.sin_addr)) {
		fprintf(stderr, "usage: call ADDRESS WORD...\n");
		return 2;
	}
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)))
		die("the agent does not answer");
	for (int i = 2; i < argc; i++)
		frame_write(fd, argv[i], strlen(argv[i]) + 1);
	frame_write(fd, "", 1);
	while (read_all(fd, &f, sizeof(f)) && f.len <= sizeof(buf) && read_all(fd, buf, f.len)) {
		if (f.kind == FRAME_STATUS)
			return *(int *)buf & 0xff;
		frame_write(f.kind == FRAME_ERR ? 2 : 1, buf, f.len);
	}
	fprintf(stderr, "the agent hung up\n");
	return 125;
}
