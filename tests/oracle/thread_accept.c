// SPDX-License-Identifier: GPL-2.0
/* Several threads accept on one socket: each connection goes to exactly one. */
#include "oracle.h"

#define CONNECTIONS 200

static int l, taken;

static void *server(void *arg)
{
	for (;;) {
		int fd = accept(l, NULL, NULL);
		char b;

		if (fd < 0)
			return NULL;
		if (read(fd, &b, 1) == 1 && b == 'q') {
			close(fd);
			return NULL;
		}
		__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST);
		must(write(fd, &b, 1));
		close(fd);
	}
}

int main(void)
{
	pthread_t t[4];
	int answered = 0;
	char b;

	l = listener(AF_INET, 128);
	for (int i = 0; i < 4; i++)
		t[i] = spawn(server, NULL);
	for (int i = 0; i < CONNECTIONS; i++) {
		int c = must(socket(AF_INET, SOCK_STREAM, 0));

		must(connect_port(c, AF_INET, local_port(l)));
		must(write(c, "x", 1));
		answered += read(c, &b, 1) == 1;
		close(c);
	}
	for (int i = 0; i < 4; i++) {
		int c = must(socket(AF_INET, SOCK_STREAM, 0));

		must(connect_port(c, AF_INET, local_port(l)));
		must(write(c, "q", 1));
		read(c, &b, 1);
		close(c);
	}
	for (int i = 0; i < 4; i++)
		join(t[i]);
	N(taken);
	N(answered);
	return 0;
}
