// SPDX-License-Identifier: GPL-2.0
/*
 * children ADDRESS COUNT - children that never exec: each in its turn sends its share of COUNT
 * datagrams, by a socket of its parent's and by one of its own.
 */
#include "oracle.h"

#define CHILDREN	4

int main(int argc, char **argv)
{
	int count, fd, status;
	union address to;

	need(argc == 3);
	to = address4(argv[1], 9);
	count = atoi(argv[2]);
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	for (int child = 0; child < CHILDREN; child++) {
		pid_t pid = must(fork());

		if (!pid) {
			int own = must(socket(AF_INET, SOCK_DGRAM, 0));

			for (int i = 0; i < count / CHILDREN; i++)
				must(sendto(i & 1 ? own : fd, "child", 5, 0, &to.sa, sizeof(to.in)));
			_exit(0);
		}
		must(waitpid(pid, &status, 0));
		need(!status);
	}
	return 0;
}
