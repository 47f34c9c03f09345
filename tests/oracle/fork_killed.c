// SPDX-License-Identifier: GPL-2.0
/* A server is killed while it forks: its port is free afterwards, wherever the fork was. */
#include "oracle.h"

#define BYTES	(256 << 20)

static void serve(int port, int ready)
{
	char *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	union address a = loopback(AF_INET, port);
	int s = must(socket(AF_INET, SOCK_STREAM, 0));

	need(memory != MAP_FAILED);
	/* Many pages for fork() to copy the tables of: it is what the process does nearly all the time. */
	must(madvise(memory, BYTES, MADV_NOHUGEPAGE));
	for (size_t i = 0; i < BYTES; i += 4096)
		memory[i] = 1;
	must(bind(s, &a.sa, sizeof(a.in)));
	must(listen(s, 1));
	must(write(ready, "x", 1));
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

/* Whether the port can be had within two seconds. */
static bool is_free(int port)
{
	union address a = loopback(AF_INET, port);

	for (int i = 0; i < 200; i++) {
		int s = must(socket(AF_INET, SOCK_STREAM, 0));
		int ret = bind(s, &a.sa, sizeof(a.in));

		close(s);
		if (!ret)
			return true;
		sleep_ms(10);
	}
	return false;
}

int main(void)
{
	int free = 0;

	alarm(170);
	for (int i = 0; i < 25; i++) {
		int ready[2], port = 20100 + i;
		pid_t pid;
		char c;

		must(pipe(ready));
		pid = must(fork());
		if (!pid)
			serve(port, ready[1]);
		must(read(ready[0], &c, 1));
		usleep(5000 + i * 377);
		must(kill(pid, SIGKILL));
		must(waitpid(pid, NULL, 0));
		free += is_free(port);
		close(ready[0]);
		close(ready[1]);
	}
	N(free);
	return 0;
}
