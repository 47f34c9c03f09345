// SPDX-License-Identifier: GPL-2.0
/* A process at its limit of processes and threads (RLIMIT_NPROC) can wait for sockets and pipes. */
#include "waiting.h"

#define NOBODY	65533

static int pipes[2], udp[2];

static void *poke(void *arg)
{
	sleep_ms(60);
	must(write(*(int *)arg, "x", 1));
	return NULL;
}

static void quiet(int e)
{
	struct pollfd f[2] = { { pipes[0], POLLIN }, { udp[0], POLLIN } };

	T(poll(f, 2, 20));
	waited("nothing", e, 20);
}

static void ready(const char *what, int e)
{
	struct pollfd f[2] = { { pipes[0], POLLIN }, { udp[0], POLLIN } };
	char b[4];

	printf("%s\n", what);
	T(poll(f, 2, 2000));
	waited(what, e, 2000);
	say("polled: %s", polled(e));
	waited(what, e, 2000);
	if (recv(udp[0], b, 1, MSG_DONTWAIT) < 0)
		must(read(pipes[0], b, 1));
}

int main(void)
{
	int e = must(epoll_create1(0)), second = must(epoll_create1(0)), go[2], status;
	struct rlimit lim = { 1, 1 };
	pid_t pid;

	must(pipe(pipes));
	must(pipe(go));
	udp_pair(AF_INET, udp);

	/* Started while that is allowed: it writes when it is told. */
	pid = must(fork());
	if (!pid) {
		char c;

		while (read(go[0], &c, 1) == 1 && c != 'q')
			poke(c == 'p' ? &pipes[1] : &udp[1]);
		_exit(0);
	}
	if (!geteuid()) {
		setgid(NOBODY);
		setuid(NOBODY);
	}
	must(setrlimit(RLIMIT_NPROC, &lim));
	if (fork() >= 0)
		skip("an account that the limit is not for");
	T(control(e, EPOLL_CTL_ADD, udp[0], EPOLLIN, 1));
	T(control(e, EPOLL_CTL_ADD, pipes[0], EPOLLIN, 2));
	quiet(e);
	must(write(go[1], "p", 1));
	ready("pipe", e);
	must(write(go[1], "u", 1));
	ready("socket", e);
	add(second, pipes[0], EPOLLIN, 3);
	add(second, udp[0], EPOLLIN, 4);
	must(write(go[1], "p", 1));
	waited("only waited for", second, 2000);
	waited("still there", second, 0);
	must(write(go[1], "q", 1));
	must(waitpid(pid, &status, 0));
	return 0;
}
