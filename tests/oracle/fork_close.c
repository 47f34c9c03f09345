// SPDX-License-Identifier: GPL-2.0
/*
 * A thread closes sockets, or puts files in their place, while another forks: in the child a number is the socket
 * or the file, and what it opens is what it reads.
 */
#include "oracle.h"

#define NUMBERS	24

static int file;
static volatile bool done;

static void *closes(void *arg)
{
	int s[NUMBERS];

	while (!done) {
		for (int i = 0; i < NUMBERS; i++)
			s[i] = socket(AF_INET, SOCK_DGRAM, 0);
		for (int i = 0; i < NUMBERS; i++)
			if (i % 2)
				dup2(file, s[i]);
		for (int i = 0; i < NUMBERS; i++)
			close(s[i]);
	}
	return arg;
}

/* Each number below some is the file, if it is anything that can be read. */
static int child(void)
{
	char byte;

	for (int i = 0; i < 3 * NUMBERS; i++) {
		int f = open("/proc/self/exe", O_RDONLY);

		if (f < 0 || pread(f, &byte, 1, 0) != 1 || byte != 0x7f)
			return 1;
	}
	return 0;
}

int main(void)
{
	int status, wrong = 0;
	pthread_t t;

	alarm(170);
	file = must(open("/proc/self/exe", O_RDONLY));
	close(must(socket(AF_INET, SOCK_DGRAM, 0)));
	t = spawn(closes, NULL);
	for (int i = 0; i < 1500; i++) {
		pid_t pid = must(fork());

		if (!pid)
			_exit(child());
		must(waitpid(pid, &status, 0));
		wrong += status != 0;
	}
	done = true;
	join(t);
	N(wrong);
	return 0;
}
