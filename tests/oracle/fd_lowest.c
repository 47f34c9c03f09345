// SPDX-License-Identifier: GPL-2.0
/* Every call that makes a descriptor takes the lowest free number, sockets and files alike. */
#include "oracle.h"

int main(void)
{
	int base = must(dup(0)), fd[12], l, c, a, e, pipes[2], ev;

	close(base);
#define AT(x) ((x) - base)
	for (int i = 0; i < 6; i++)
		fd[i] = i & 1 ? must(open("/dev/null", O_RDWR)) : must(socket(AF_INET, SOCK_STREAM, 0));
	for (int i = 0; i < 6; i++)
		printf("%d ", AT(fd[i]));
	printf("\n");
	close(fd[1]);
	close(fd[4]);
	say("socket into a file's place %d", AT(socket(AF_INET, SOCK_DGRAM, 0)));
	say("file into a socket's place %d", AT(open("/dev/null", O_RDONLY)));
	close(fd[0]);
	say("dup of a file into a socket's place %d", AT(dup(fd[3])));
	close(fd[3]);
	say("dup of a socket %d", AT(dup(fd[2])));
	close(fd[0]);
	l = listener(AF_INET, 4);
	say("listener %d", AT(l));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	say("client %d", AT(c));
	must(connect_port(c, AF_INET, local_port(l)));
	close(fd[1]);
	a = must(accept(l, NULL, NULL));
	say("accepted %d", AT(a));
	close(fd[2]);
	e = must(epoll_create1(0));
	say("epoll %d", AT(e));
	close(fd[3]);
	ev = must(eventfd(0, 0));
	say("eventfd %d", AT(ev));
	close(e);
	close(fd[5]);
	must(pipe(pipes));
	say("pipe %d %d", AT(pipes[0]), AT(pipes[1]));
	close(ev);
	say("failed calls take none: %d", socket(AF_INET, 99, 0));
	say("next %d", AT(socket(AF_INET6, SOCK_DGRAM, 0)));
	/* stdin too. */
	close(0);
	say("stdin's %d", socket(AF_INET, SOCK_DGRAM, 0));
	close(0);
	say("stdin's %d", open("/dev/null", O_RDONLY));
	return 0;
}
