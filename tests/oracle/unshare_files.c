// SPDX-License-Identifier: GPL-2.0
/* unshare(CLONE_FILES) and close_range(CLOSE_RANGE_UNSHARE) of a process that shares its descriptors: later changes affect its own table only. */
#include "oracle.h"
#include <linux/close_range.h>
#include <sched.h>

static int sock[2], pipes[2];

static int unshare_by_range(void)
{
	return syscall(SYS_close_range, 900, 901, CLOSE_RANGE_UNSHARE);
}

static int unshare_by_flag(void)
{
	return unshare(CLONE_FILES);
}

static const char *is(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? ename(errno) : "open";
}

/* Waits for a socket of the node and a pipe of the host at once, by poll() and by epoll. */
static void waits(const char *who, int node, int host)
{
	struct pollfd fds[2] = { { node, POLLIN, 0 }, { host, POLLIN, 0 } };
	struct epoll_event ev = { .events = EPOLLIN };
	int ep = must(epoll_create1(EPOLL_CLOEXEC)), polled, first, second;

	polled = poll(fds, 2, 10);
	must(epoll_ctl(ep, EPOLL_CTL_ADD, node, &ev));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, host, &ev));
	first = epoll_wait(ep, &ev, 1, 0);
	say("%s waits: %d, %d %d", who, polled, fds[0].revents, fds[1].revents);
	second = epoll_wait(ep, &ev, 1, 10);
	say("%s by epoll: %d %d", who, first, second);
	close(ep);
}

static void apart(int (*how)(void))
{
	int fd, ends[2];
	char c = 0;

	say("result %d", how());
	close(sock[0]);
	close(pipes[0]);
	say("closed: %s %s", is(sock[0]), is(pipes[0]));
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(pipe(ends));
	say("the lowest number: %d, the next %d", fd == sock[0] || fd == pipes[0], is(ends[1])[0] == 'o');
	T(write(ends[1], "x", 1));
	waits("it", fd, ends[0]);
	T(read(ends[0], &c, 1));
	T(send(sock[1], "y", 1, MSG_NOSIGNAL));
	T(setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &(int){ 1 }, sizeof(int)));
	must(dup2(fd, 700));
	must(dup2(ends[0], 701));
}

static void after(const char *what)
{
	char c = 0;

	say("%s: then %s %s, %s %s", what, is(sock[0]), is(pipes[0]), is(700), is(701));
	must(write(pipes[1], "z", 1));
	waits("the other", sock[0], pipes[0]);
	T(recv(sock[0], &c, 1, MSG_DONTWAIT));
	T(read(pipes[0], &c, 1));
}

static void run(const char *what, int (*how)(void), bool polls_before)
{
	pid_t pid;
	int s;

	tcp_pair(AF_INET, sock);
	must(pipe(pipes));
	if (polls_before)
		waits("before, it", sock[0], pipes[0]);
	fflush(stdout);
	pid = must(syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0));
	if (!pid) {
		apart(how);
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(pid, &s, 0));
	say("exit %d", s);
	after(what);
	close(sock[0]);
	close(sock[1]);
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	run("a process", unshare_by_flag, false);
	run("a process, by close_range()", unshare_by_range, false);
	run("a process after poll()", unshare_by_flag, true);
	T(unshare_by_flag());
	return 0;
}
