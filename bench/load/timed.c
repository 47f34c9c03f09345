// SPDX-License-Identifier: GPL-2.0
/* timed - how long a command takes: timed COMMAND [ARGS]... */
#include "wire.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
	uint64_t start = now_ns();
	int status;
	pid_t child;

	if (argc < 2)
		return 2;
	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		execv(argv[1], argv + 1);
		die(argv[1]);
	}
	if (waitpid(child, &status, 0) != child || status)
		return 1;
	out("ms", (now_ns() - start) / 1e6);
	return 0;
}
