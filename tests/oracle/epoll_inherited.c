// SPDX-License-Identifier: GPL-2.0
/*
 * An epoll that was inherited over exec, or received in a message: poll, select and other epolls see it ready if and
 * only if it has events.
 */
#include "scm.h"

static void nested(const char *what, int e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = 9 }, out = {};
	int outer = must(epoll_create1(0)), n;

	must(epoll_ctl(outer, EPOLL_CTL_ADD, e, &ev));
	n = epoll_wait(outer, &out, 1, 200);
	say("%s, nested: %d of %u", what, n, n > 0 ? out.data.u32 : 0);
	close(outer);
}

static void look(const char *what, int e, int timeout)
{
	struct pollfd p = { e, POLLIN };
	struct epoll_event out = {};
	int n;

	say("%s, poll: %d", what, poll(&p, 1, timeout));
	nested(what, e);
	say("%s, poll again: %d", what, poll(&p, 1, timeout));
	n = epoll_wait(e, &out, 1, timeout);
	say("%s, wait: %d of %u", what, n, n > 0 ? out.data.u32 : 0);
}

static void member(int e, int fd, unsigned int data)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = data };

	must(epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev));
}

static void run(char *self, const char *how, bool mixed)
{
	int numbers[4], pipes[2], tcp[2], status;
	char text[4][16];
	pid_t pid;

	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		must(pipe(pipes));
		tcp_pair(AF_INET, tcp);
		numbers[0] = must(epoll_create1(0));
		numbers[1] = pipes[0];
		numbers[2] = pipes[1];
		numbers[3] = tcp[1];
		member(numbers[0], pipes[0], 1);
		if (mixed)
			member(numbers[0], tcp[0], 2);
		for (int i = 0; i < 4; i++)
			snprintf(text[i], sizeof(text[i]), "%d", numbers[i]);
		execl("/proc/self/exe", self, how, text[0], text[1], text[2], text[3], NULL);
		_exit(99);
	}
	must(waitpid(pid, &status, 0));
	N(status);
}

/* After exec: a pipe, a socket, and what comes meanwhile. */
static void executed(const char *how, char **argv)
{
	int e = atoi(argv[2]), pipe_r = atoi(argv[3]), pipe_w = atoi(argv[4]), tcp = atoi(argv[5]);
	char b[4];

	if (!strcmp(how, "nested first")) {
		nested(how, e);
		must(write(pipe_w, "x", 1));
		nested(how, e);
		must(read(pipe_r, b, 1));
		return;
	}
	look("nothing", e, 20);
	must(write(pipe_w, "x", 1));
	look("pipe", e, 1000);
	must(read(pipe_r, b, 1));
	look("read", e, 20);
	must(write(tcp, "x", 1));
	look("socket", e, 1000);
}

static void passed(void)
{
	int ux[2], go[2], pipes[2], e = must(epoll_create1(0)), status;
	pid_t pid;
	char b;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	must(pipe(go));
	must(pipe(pipes));
	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		e = take_one(ux[1], 0);
		look("passed", e, 50);
		must(write(go[1], "x", 1));
		look("passed, ready", e, 2000);
		fflush(stdout);
		_exit(0);
	}
	member(e, pipes[0], 3);
	must(pass_one(ux[0], e));
	must(read(go[0], &b, 1));
	must(write(pipes[1], "x", 1));
	must(waitpid(pid, &status, 0));
	N(status);
	look("at its sender", e, 1000);
	must(read(pipes[0], &b, 1));
	look("at its sender, read", e, 20);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		executed(argv[1], argv);
		return 0;
	}
	run(argv[0], "nested first", false);
	run(argv[0], "both", true);
	passed();
	return 0;
}
