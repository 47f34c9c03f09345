// SPDX-License-Identifier: GPL-2.0
/* poll() takes no more entries than RLIMIT_NOFILE allows descriptors, whosever they are. */
#include "oracle.h"

static struct pollfd f[2000];

static void with(const char *what, int first, int second)
{
	struct timespec now = { 0, 0 };

	say("%s", what);
	for (unsigned int i = 0; i < ARRAY_SIZE(f); i++)
		f[i] = (struct pollfd){ .fd = -1 };
	f[0] = (struct pollfd){ .fd = first, .events = POLLIN | POLLOUT };
	f[1] = (struct pollfd){ .fd = second, .events = POLLIN | POLLOUT };
	T(poll(f, 64, 0));
	T(poll(f, 65, 0));
	T(poll(f, 200, 0));
	T(poll(f, 2000, 0));
	T(ppoll(f, 64, &now, NULL));
	T(ppoll(f, 65, &now, NULL));
	T(poll(f, -1, 0));
}

int main(void)
{
	int s = bound(AF_INET, SOCK_DGRAM), pipes[2];
	struct rlimit lim;

	must(pipe(pipes));
	must(getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = 64;
	must(setrlimit(RLIMIT_NOFILE, &lim));
	with("none", -1, -1);
	with("pipe", -1, pipes[1]);
	with("socket", s, -1);
	with("both", s, pipes[1]);
	return 0;
}
