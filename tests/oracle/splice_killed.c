// SPDX-License-Identifier: GPL-2.0
/* Processes that are killed, or execute another program, in the midst of splice(): others splice from the same pipe all the same. */
#include "oracle.h"

#define TURNS	60

static int source[2], sink[2];

static pid_t feeder(void)
{
	static char bytes[4096];
	pid_t pid = must(fork());

	if (pid)
		return pid;
	while (write(source[1], bytes, sizeof(bytes)) > 0)
		;
	_exit(0);
}

static pid_t eater(void)
{
	static char bytes[65536];
	pid_t pid = must(fork());

	if (pid)
		return pid;
	while (read(sink[1], bytes, sizeof(bytes)) > 0)
		;
	_exit(0);
}

static void *splices(void *none)
{
	while (splice(source[0], NULL, sink[0], NULL, 4096, 0) > 0)
		;
	return none;
}

static bool one_more(void)
{
	return splice(source[0], NULL, sink[0], NULL, 4096, 0) > 0;
}

static long after_kill(void)
{
	long moved = 0;
	pid_t pid;

	for (int i = 0; i < TURNS; i++) {
		pid = must(fork());
		if (!pid)
			splices(NULL);
		usleep(2000 + i * 37);
		must(kill(pid, SIGKILL));
		must(waitpid(pid, NULL, 0));
		moved += one_more();
	}
	return moved;
}

/* The next program closes `told`, and waits. */
static long after_exec(char *self)
{
	long moved = 0;
	int told[2];
	pid_t pid;
	char byte;

	for (int i = 0; i < TURNS; i++) {
		must(pipe2(told, O_CLOEXEC));
		pid = must(fork());
		if (!pid) {
			spawn(splices, NULL);
			usleep(2000 + i * 37);
			execl(self, self, "waits", NULL);
			_exit(1);
		}
		must(close(told[1]));
		must(read(told[0], &byte, 1));
		must(close(told[0]));
		moved += one_more();
		must(kill(pid, SIGKILL));
		must(waitpid(pid, NULL, 0));
	}
	return moved;
}

int main(int argc, char **argv)
{
	pid_t others[2];

	alarm(60);
	if (argc > 1)
		pause();
	must(pipe(source));
	tcp_pair(AF_INET, sink);
	others[0] = feeder();
	others[1] = eater();
	say("after a kill %d", after_kill() == TURNS);
	say("after an exec %d", after_exec(argv[0]) == TURNS);
	for (int i = 0; i < 2; i++) {
		must(kill(others[i], SIGKILL));
		must(waitpid(others[i], NULL, 0));
	}
	return 0;
}
