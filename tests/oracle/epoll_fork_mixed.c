// SPDX-License-Identifier: GPL-2.0
/* An epoll that two processes share: its events are reported whichever process waits, and whichever added the member. */
#include "oracle.h"
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), u[2], p[2], again[2];
	char c;
	pid_t pid;

	udp_pair(AF_INET, u);
	must(pipe(p));
	must(pipe(again));
	add(e, u[0], EPOLLIN, 1);
	pid = must(fork());
	if (!pid) {
		struct epoll_event ev;

		sleep_ms(100);
		epoll_wait(e, &ev, 1, 0);
		/* A member of the other kind; the parent has it at the same number. */
		must(read(again[0], &c, 1));
		add(e, p[0], EPOLLIN, 2);
		must(write(p[1], "x", 1));
		must(read(again[0], &c, 1));
		_exit(0);
	}
	waited("nothing yet", e, 500);
	must(write(again[1], "x", 1));
	waited("the child's pipe", e, 5000);
	must(read(p[0], &c, 1));
	must(send(u[1], "x", 1, 0));
	waited("the parent's socket", e, 5000);
	must(write(again[1], "x", 1));
	must(waitpid(pid, NULL, 0));
	return 0;
}
