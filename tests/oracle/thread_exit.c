// SPDX-License-Identifier: GPL-2.0
/* Processes that end while their threads are still starting: no other process is affected. */
#include "oracle.h"
#include <sys/wait.h>

#define WORKERS	12
#define TURNS	100

static void *starts(void *arg)
{
	for (;;)
		close(socket(AF_INET, SOCK_DGRAM, 0));
	return arg;
}

static void *answers(void *arg)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	for (int i = 0; i < 20; i++)
		must(fcntl(fd, F_GETFL));
	close(fd);
	return arg;
}

/* How many children ended otherwise than they should. */
static int ends_early(void)
{
	int bad = 0;

	for (int i = 0; i < TURNS; i++) {
		int status, pid = must(fork());

		if (!pid) {
			pthread_t t;

			pthread_create(&t, NULL, starts, NULL);
			_exit(7);
		}
		must(waitpid(pid, &status, 0));
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	}
	return bad;
}

/* Others take up the blocks that those leave. */
static int goes_on(void)
{
	for (int i = 0; i < 2 * TURNS; i++)
		join(spawn(answers, NULL));
	return 0;
}

int main(void)
{
	int status, bad = 0;

	for (int i = 0; i < WORKERS; i++) {
		if (!must(fork()))
			_exit(i % 2 ? ends_early() : goes_on());
	}
	while (wait(&status) > 0)
		bad += WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
	N(bad);
	return 0;
}
