// SPDX-License-Identifier: GPL-2.0
/* A process that may have no queued signals ends as it says, with threads that wait, make calls, or compute: none gets a signal. */
#include "oracle.h"
#include <sys/resource.h>
#include <sys/wait.h>

static void *waits(void *arg)
{
	char byte;

	recv(*(int *)arg, &byte, 1, 0);
	return arg;
}

static void *calls(void *arg)
{
	for (;;)
		close(socket(AF_INET, SOCK_DGRAM, 0));
	return arg;
}

static void *computes(void *arg)
{
	for (;;)
		asm volatile("");
	return arg;
}

static volatile int *handled;

static void on_bus(int sig)
{
	(void)sig;
	++*handled;
}

int main(void)
{
	struct rlimit none = { 0, 0 };
	int bad = 0, status;

	handled = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(handled != MAP_FAILED);
	for (int i = 0; i < 20; i++) {
		int pid = must(fork());

		if (!pid) {
			int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

			must(setrlimit(RLIMIT_SIGPENDING, &none));
			signal(SIGBUS, on_bus);
			spawn(waits, &fd);
			spawn(computes, NULL);
			spawn(calls, NULL);
			usleep(2000);
			_exit(7);
		}
		must(waitpid(pid, &status, 0));
		bad += !WIFEXITED(status) || WEXITSTATUS(status) != 7;
	}
	N(bad);
	N(*handled);
	return 0;
}
