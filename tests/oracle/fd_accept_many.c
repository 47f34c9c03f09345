// SPDX-License-Identifier: GPL-2.0
/* More connections than fit below 1024: both ends of each can be watched, read and written. */
#include "oracle.h"
#include <sys/epoll.h>
#include <sys/resource.h>

#define CONNECTIONS 1100

/* By exec, so that the program before has left what it had open for it. */
static void again(char **argv)
{
	struct rlimit lim;

	must(getrlimit(RLIMIT_NOFILE, &lim));
	need(lim.rlim_max >= 3 * CONNECTIONS);
	lim.rlim_cur = 3 * CONNECTIONS;
	must(setrlimit(RLIMIT_NOFILE, &lim));
	execl("/proc/self/exe", argv[0], "again", NULL);
	must(-1);
}

int main(int argc, char **argv)
{
	int l, e, good = 0;

	if (argc == 1)
		again(argv);
	l = listener(AF_INET, 5);
	e = must(epoll_create1(0));
	for (int i = 0; i < CONNECTIONS; i++) {
		struct epoll_event ev = { EPOLLIN, { 0 } };
		int c = must(socket(AF_INET, SOCK_STREAM, 0)), s;
		char b = 0;

		must(connect_port(c, AF_INET, local_port(l)));
		s = must(accept(l, NULL, NULL));
		must(epoll_ctl(e, EPOLL_CTL_ADD, s, &ev));
		must(epoll_ctl(e, EPOLL_CTL_ADD, c, &ev));
		must(write(c, "x", 1));
		need(epoll_wait(e, &ev, 1, 2000) == 1);
		need(read(s, &b, 1) == 1 && b == 'x');
		good++;
	}
	say("%d good", good);
	return 0;
}
