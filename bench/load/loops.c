// SPDX-License-Identifier: GPL-2.0
/* loops - so many processes that do nothing but use a CPU, until this one ends: loops N */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int n = argc == 2 ? atoi(argv[1]) : 0;
	pid_t self = getpid();

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("fork");
			return 1;
		}
		if (pid)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (volatile unsigned long turns = 0; getppid() == self;)
			for (int k = 0; k < 100000000; k++)
				turns++;
		_exit(0);
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
