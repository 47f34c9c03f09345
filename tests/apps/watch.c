// SPDX-License-Identifier: GPL-2.0
/* watch ADDRESS PORT - connects, says "connected", and how the connection ends. */
#include "oracle.h"

int main(int argc, char **argv)
{
	union address a;
	int fd;
	char b[64];
	ssize_t n;

	need(argc == 3);
	a = address4(argv[1], atoi(argv[2]));
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	for (int i = 0; connect(fd, &a.sa, sizeof(a.in)); i++) {
		need(errno == ECONNREFUSED && i < 200);
		sleep_ms(20);
	}
	say("connected");
	n = recv(fd, b, sizeof(b), 0);
	say("end %s", n < 0 ? ename(errno) : n ? "data" : "FIN");
	return 0;
}
