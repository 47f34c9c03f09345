// SPDX-License-Identifier: GPL-2.0
/* A process ends while its vfork child has its memory: the child executes its program all the same, or ends. */
#include "oracle.h"
#include <poll.h>
#include <sys/wait.h>

static int out;
static char command[64];
static bool execs;

static void *begins(void *arg)
{
	if (!vfork()) {
		struct timespec ts = { 0, 100000000 };

		nanosleep(&ts, NULL);
		if (execs)
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(0);
	}
	return arg;
}

/* Its child's pipe has an end when the child has come to its own. */
static void ends_early(void)
{
	int p[2], status, pid;
	struct pollfd fd;
	char text[16] = "";

	must(pipe(p));
	out = p[1];
	snprintf(command, sizeof(command), "echo lives >&%d", out);
	pid = must(fork());
	if (!pid) {
		spawn(begins, NULL);
		usleep(30000);
		_exit(7);
	}
	close(out);
	must(waitpid(pid, &status, 0));
	N(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	do {
		fd = (struct pollfd){ p[0], POLLIN, 0 };
		N(poll(&fd, 1, 5000));
		text[0] = 0;
	} while (fd.revents && must(read(p[0], text, sizeof(text) - 1)) > 0 && printf("%.5s\n", text));
	close(p[0]);
}

int main(void)
{
	execs = true;
	ends_early();
	execs = false;
	ends_early();
	return 0;
}
