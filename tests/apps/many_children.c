// SPDX-License-Identifier: GPL-2.0
/* many_children - forks CHILDREN children one after another, each of which makes a few calls and ends */
#include "oracle.h"
#include <sys/wait.h>

#define CHILDREN	200

static void child(int in, int out)
{
	char byte = 0;

	must(read(in, &byte, 1));
	byte++;
	must(write(out, &byte, 1));
	_exit(byte);
}

int main(void)
{
	int to[2], from[2], status;
	pid_t pid;
	char byte;

	must(pipe(to));
	must(pipe(from));
	for (int i = 0; i < CHILDREN; i++) {
		pid = fork();
		must(pid);
		if (!pid)
			child(to[0], from[1]);
		byte = i % 100;
		must(write(to[1], &byte, 1));
		must(read(from[0], &byte, 1));
		must(waitpid(pid, &status, 0));
		if (byte != i % 100 + 1 || !WIFEXITED(status) || WEXITSTATUS(status) != i % 100 + 1)
			return 1;
	}
	say("waited for all");
	return 0;
}
