// SPDX-License-Identifier: GPL-2.0
/* A child that waits for descriptors of both kinds does not keep its parent awake, which waits for the same. */
#include "oracle.h"

int main(void)
{
	int u[2], p[2], top;
	struct timeval second = { 1, 0 };
	struct pollfd f[2];
	pid_t pid;
	clock_t c;
	fd_set r;

	udp_pair(AF_INET, u);
	must(pipe(p));
	f[0] = (struct pollfd){ u[0], POLLIN, 0 };
	f[1] = (struct pollfd){ p[0], POLLIN, 0 };
	T(poll(f, 2, 20));
	pid = must(fork());
	if (!pid) {
		poll(f, 2, 5000);
		_exit(0);
	}
	sleep_ms(200);
	FD_ZERO(&r);
	FD_SET(u[0], &r);
	FD_SET(p[0], &r);
	top = u[0] > p[0] ? u[0] : p[0];
	c = clock();
	T(select(top + 1, &r, NULL, NULL, &second));
	say("%s", clock() - c < CLOCKS_PER_SEC / 3 ? "asleep" : "awake");
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0));
	return 0;
}
