// SPDX-License-Identifier: GPL-2.0
/* A server that forks for each connection. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 16), answered = 0, good = 0, status;
	char b[16];

	for (int i = 0; i < 10; i++) {
		int c = must(socket(AF_INET, SOCK_STREAM, 0)), a;

		must(connect_port(c, AF_INET, local_port(l)));
		a = must(accept(l, NULL, NULL));
		if (!must(fork())) {
			close(c);
			close(l);
			must(read(a, b, sizeof(b)));
			must(write(a, b, 4));
			_exit(0);
		}
		close(a);
		must(write(c, "ping", 4));
		answered += recv(c, b, 4, MSG_WAITALL) == 4;
		need(read(c, b, 1) == 0);
		close(c);
	}
	while (wait(&status) > 0)
		good += !status;
	N(answered);
	N(good);
	return 0;
}
