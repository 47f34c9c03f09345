// SPDX-License-Identifier: GPL-2.0
/*
 * hold MODE ADDRESS PORT - accepts one connection, says "accepted PID" and holds it:
 *	idle	in a host call (pause)
 *	recv	in recv() on it
 *	poll	in poll() on it and a pipe
 *	spin	in a loop in user space
 */
#include "oracle.h"

int main(int argc, char **argv)
{
	union address a;
	int l, s, pipes[2];
	char b[64];

	need(argc == 4);
	a = address4(argv[2], atoi(argv[3]));
	l = must(socket(AF_INET, SOCK_STREAM, 0));
	must(set_int(l, SOL_SOCKET, SO_REUSEADDR, 1));
	must(bind(l, &a.sa, sizeof(a.in)));
	must(listen(l, 1));
	s = must(accept(l, NULL, NULL));
	must(pipe(pipes));
	say("accepted %d", getpid());
	if (!strcmp(argv[1], "idle"))
		for (;;)
			pause();
	if (!strcmp(argv[1], "poll"))
		poll((struct pollfd[]){ { s, POLLIN }, { pipes[0], POLLIN } }, 2, -1);
	if (!strcmp(argv[1], "spin"))
		for (volatile int i = 0;; i++)
			;
	say("recv %zd", recv(s, b, sizeof(b), 0));
	return 0;
}
