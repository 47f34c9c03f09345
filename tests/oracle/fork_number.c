// SPDX-License-Identifier: GPL-2.0
/* A child has its number for the node's kernel as soon as its parent knows it, whatever the child does. */
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
