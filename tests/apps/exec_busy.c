// SPDX-License-Identifier: GPL-2.0
/* exec_busy N - computes without a call, each time a little longer, and executes itself N times */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LEAST	20000000L	/* loops: some 10 ms */
#define STEP	1000000L

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 0;
	char next[12];

	for (volatile long i = 0; i < LEAST + left * STEP; i++)
		;
	if (!left) {
		puts("done");
		return 0;
	}
	snprintf(next, sizeof(next), "%d", left - 1);
	execl(argv[0], argv[0], next, (char *)NULL);
	return 1;
}
