// SPDX-License-Identifier: GPL-2.0
/*
 * SIGKILL from within the node, each way there is, of processes that are inside its kernel
 * nearly all the time: none of them may die there. Some are in the sender's own group.
 */
#include "t.h"

#define TURNS 12

static void fill(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	fd[0] = MUST(socket(AF_INET, SOCK_DGRAM, 0));
	fd[1] = MUST(socket(AF_INET, SOCK_DGRAM, 0));
	MUST(bind(fd[1], (void *)&a, sizeof(a)));
	MUST(getsockname(fd[1], (void *)&a, &len));
	MUST(connect(fd[0], (void *)&a, sizeof(a)));
}

static void *busy(void *arg)
{
	static char data[60000];
	char in[60000];
	int fd[2];

	(void)arg;
	fill(fd);
	for (;;)
		if (send(fd[0], data, sizeof(data), 0) < 0 || recv(fd[1], in, sizeof(in), 0) < 0)
			_exit(3);
}

/* A group of its own: two busy threads, and a busy child. */
static void victim(int ready, int with_sender)
{
	pthread_t t;

	setpgid(0, 0);
	pthread_create(&t, NULL, busy, NULL);
	if (!MUST(fork()))
		busy(NULL);
	MUST(write(ready, "x", 1));
	if (!with_sender)
		busy(NULL);
	usleep(2000);
	kill(0, SIGKILL);
	_exit(4);
}

static void by(const char *how, pid_t pid)
{
	union sigval none = { 0 };
	int fd;

	if (!strcmp(how, "kill")) {
		MUST(kill(pid, SIGKILL));
	} else if (!strcmp(how, "tgkill")) {
		MUST(syscall(SYS_tgkill, pid, pid, SIGKILL));
	} else if (!strcmp(how, "tkill")) {
		MUST(syscall(SYS_tkill, pid, SIGKILL));
	} else if (!strcmp(how, "sigqueue")) {
		MUST(sigqueue(pid, SIGKILL, none));
	} else if (!strcmp(how, "pidfd")) {
		fd = MUST(syscall(SYS_pidfd_open, pid, 0));
		MUST(syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0));
		MUST(close(fd));
	}
	/* The child of the victim, and in "group" the victim too. */
	MUST(kill(-pid, SIGKILL));
}

int main(void)
{
	static const char * const ways[] = { "kill", "tgkill", "tkill", "sigqueue", "pidfd", "group",
					     "own group" };
	unsigned int w;
	int turn;

	for (w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		int own = !strcmp(ways[w], "own group"), killed = 0;

		for (turn = 0; turn < TURNS; turn++) {
			int p[2], status, fd[2];
			char c;
			pid_t pid;

			MUST(pipe(p));
			pid = MUST(fork());
			if (!pid)
				victim(p[1], own);
			MUST(read(p[0], &c, 1));
			usleep(turn * 700);
			if (!own)
				by(ways[w], pid);
			MUST(waitpid(pid, &status, 0));
			killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
			fill(fd);	/* the node is there */
			close(fd[0]);
			close(fd[1]);
			close(p[0]);
			close(p[1]);
		}
		printf("%s: %d of %d killed\n", ways[w], killed, TURNS);
		fflush(stdout);
	}
	return 0;
}
