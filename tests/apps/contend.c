// SPDX-License-Identifier: GPL-2.0
/*
 * contend SECONDS - threads that want the vCPU all the time, each in its own way: round trips over loopback, calls that never
 * wait, and children that are killed, beside programs that only compute. Says how many children were killed.
 */
#include "oracle.h"
#include <fcntl.h>

enum { PAIRS = 3, COMPUTE = 2, CALL = 1 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void trips(int fd, bool first)
{
	char b = 'x';

	need(!first || write(fd, &b, 1) == 1);
	while (read(fd, &b, 1) == 1 && write(fd, &b, 1) == 1)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t all[2 * PAIRS + COMPUTE + CALL];
	int n = 0, kills = 0;
	double end;

	need(argc == 2);
	for (int i = 0; i < PAIRS; i++) {
		int p[2];

		tcp_pair(AF_INET, p);
		for (int side = 0; side < 2; side++)
			if (!(all[n++] = must(fork())))
				trips(p[side], !side);
		close(p[0]);
		close(p[1]);
	}
	for (int i = 0; i < COMPUTE; i++)
		if (!(all[n++] = must(fork())))
			for (volatile int x = 0;; x++)
				;
	for (int i = 0; i < CALL; i++)
		if (!(all[n++] = must(fork())))
			for (int fd = must(socket(AF_INET, SOCK_DGRAM, 0));;)
				must(fcntl(fd, F_GETFL));
	for (end = now() + atof(argv[1]); now() < end; kills++) {
		pid_t pid = must(fork());

		if (!pid)
			for (int fd = must(socket(AF_INET, SOCK_DGRAM, 0));;)
				must(fcntl(fd, F_GETFL));
		must(kill(pid, SIGKILL));
		must(waitpid(pid, NULL, 0));
	}
	while (n--) {
		must(kill(all[n], SIGKILL));
		must(waitpid(all[n], NULL, 0));
	}
	say("%d", kills);
	return 0;
}
