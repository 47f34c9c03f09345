// SPDX-License-Identifier: GPL-2.0
/* The node's kernel knows a child by its pid as soon as the parent has the pid, whatever the child does. */
#include "oracle.h"
#include <sys/wait.h>

#define TURNS	200

int main(void)
{
	int sock = must(socket(AF_INET, SOCK_DGRAM, 0)), turn, good = 0;
	pid_t pid;

	for (turn = 0; turn < TURNS; turn++) {
		pid = must(fork());
		if (!pid) {
			pause();
			_exit(1);
		}
		if (!fcntl(sock, F_SETOWN, pid) && fcntl(sock, F_GETOWN) == pid)
			good++;
		kill(pid, SIGKILL);
		must(waitpid(pid, NULL, 0));
	}
	say("owners: %d", good);
	return 0;
}
