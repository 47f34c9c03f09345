// SPDX-License-Identifier: GPL-2.0
/* The last two threads of a process leave by exit(2) at once, after a wait for descriptors of both kinds: it ends. */
#include "oracle.h"

static pthread_barrier_t both;

static void *leaves(void *arg)
{
	pthread_barrier_wait(&both);
	syscall(SYS_exit, 0);
	return arg;
}

int main(void)
{
	int ended = 0;

	alarm(40);
	for (int i = 0; i < 100; i++) {
		pid_t pid = must(fork());
		int u[2], p[2];

		if (!pid) {
			struct pollfd f[2];

			udp_pair(AF_INET, u);
			must(pipe(p));
			f[0] = (struct pollfd){ u[0], POLLIN, 0 };
			f[1] = (struct pollfd){ p[0], POLLIN, 0 };
			poll(f, 2, 1);
			must(pthread_barrier_init(&both, NULL, 2));
			spawn(leaves, NULL);
			leaves(NULL);
		}
		ended += waitpid(pid, NULL, 0) == pid;
	}
	N(ended);
	return 0;
}
