// SPDX-License-Identifier: GPL-2.0
/*
 * A program with one thread may unshare what only such programs may, and enter namespaces, after it has waited for
 * sockets and pipes at once as before; and goes on waiting.
 */
#include "waiting.h"
#include <sched.h>

static int pipes[2], udp[2], mixed;
static pid_t self;

static void wait_for_both(void)
{
	struct pollfd f[2] = { { pipes[0], POLLIN }, { udp[0], POLLIN } };
	char b[4];
	pid_t pid;
	int n;

	T(poll(f, 2, 20));
	waited("nothing", mixed, 20);
	pid = must(fork());
	if (!pid) {
		wait_until_asleep(self);
		must(write(pipes[1], "x", 1));
		_exit(0);
	}
	waited("pipe", mixed, 5000);
	must(read(pipes[0], b, 1));
	must(waitpid(pid, NULL, 0));
	pid = must(fork());
	if (!pid) {
		wait_until_asleep(self);
		must(write(pipes[1], "x", 1));
		_exit(0);
	}
	n = poll(f, 2, 5000);
	say("poll: %d %s %s", n, events(f[0].revents), events(f[1].revents));
	must(read(pipes[0], b, 1));
	must(waitpid(pid, NULL, 0));
}

static void *nothing(void *arg)
{
	return NULL;
}

/* In a child: the calls change it for good. */
static void tried(const char *what, int flags, const char *space)
{
	pid_t pid;

	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		int ns = space ? must(open(space, O_RDONLY | O_CLOEXEC)) : -1;

		self = getpid();
		say("%s", what);
		wait_for_both();
		for (int i = 0; i < 2; i++) {
			if (space)
				T(setns(ns, flags));
			else
				T(unshare(flags));
			wait_for_both();
			if (flags & CLONE_NEWUSER)
				break;
		}
		join(spawn(nothing, NULL));
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0));
}

int main(void)
{
	must(pipe(pipes));
	udp_pair(AF_INET, udp);
	mixed = must(epoll_create1(0));
	add(mixed, udp[0], EPOLLIN, 1);
	add(mixed, pipes[0], EPOLLIN, 2);
	tried("unshare VM", CLONE_VM, NULL);
	tried("unshare SIGHAND", CLONE_SIGHAND, NULL);
	tried("unshare THREAD", CLONE_THREAD, NULL);
	tried("unshare FS", CLONE_FS, NULL);
	tried("unshare FILES", CLONE_FILES, NULL);
	tried("unshare NEWUSER", CLONE_NEWUSER, NULL);
	tried("unshare NEWNS", CLONE_NEWNS, NULL);
	tried("setns mnt", CLONE_NEWNS, "/proc/self/ns/mnt");
	tried("setns time", 0, "/proc/self/ns/time");
	return 0;
}
