// SPDX-License-Identifier: GPL-2.0
/* Passed sockets in epoll and poll sets, and an epoll passed itself. */
#include "scm.h"

static void waited(const char *what, int ep)
{
	struct epoll_event ev[4] = {};
	int n = epoll_wait(ep, ev, 4, 2000);

	say("%s: %d, %s of %d", what, n, n > 0 ? events(ev[0].events) : "-",
	    n > 0 ? (int)ev[0].data.u32 : 0);
}

static void add(int ep, int fd, unsigned int bits, unsigned int data)
{
	struct epoll_event ev = { .events = bits, .data.u32 = data };

	must(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev));
}

int main(void)
{
	int ux[2], tcp[2], p[2], ep = must(epoll_create1(0)), fd, passed, status;
	struct epoll_event ev;
	char b[16];
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	must(pipe(p));
	tcp_pair(AF_INET, tcp);
	must(pass_one(ux[0], tcp[0]));
	close(tcp[0]);
	add(ep, ux[1], EPOLLIN, 1);
	waited("the message", ep);
	fd = take_one(ux[1], 0);
	add(ep, fd, EPOLLIN, 2);
	must(write(tcp[1], "x", 1));
	waited("the passed socket", ep);
	must(read(fd, b, 1));

	/* Its number closed, the file lives in a message: it stays in the set. */
	must(pass_one(ux[0], fd));
	must(recv(ux[1], b, 1, MSG_PEEK));
	close(fd);
	must(epoll_ctl(ep, EPOLL_CTL_DEL, ux[1], NULL));
	must(write(tcp[1], "y", 1));
	waited("closed, on its way", ep);
	fd = take_one(ux[1], 0);
	must(read(fd, b, 1));
	close(fd);
	must(write(tcp[1], "z", 1));
	say("last one closed: %d", (int)epoll_wait(ep, &ev, 1, 50));
	close(tcp[1]);

	/* The epoll goes to a child, with a member of either kind. */
	tcp_pair(AF_INET, tcp);
	add(ep, tcp[0], EPOLLIN, 3);
	add(ep, p[0], EPOLLIN, 4);
	pid = must(fork());
	if (!pid) {
		close(ep);
		passed = take_one(ux[1], 0);
		must(write(tcp[1], "x", 1));
		waited("child, socket", passed);
		must(read(tcp[0], b, 1));
		must(write(p[1], "x", 1));
		waited("child, pipe", passed);
		must(read(p[0], b, 1));
		add(passed, tcp[1], EPOLLIN, 5);
		must(write(tcp[0], "y", 1));
		_exit(0);
	}
	/* Not T(): the child may be the first to say something. */
	must(pass_one(ux[0], ep));
	must(waitpid(pid, &status, 0));
	say("child %d", status);
	waited("what the child added", ep);
	return 0;
}
