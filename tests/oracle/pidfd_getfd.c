// SPDX-License-Identifier: GPL-2.0
/* pidfd_getfd: descriptors taken out of a child. */
#include "scm.h"

static int getfd(int pidfd, int fd, unsigned int flags)
{
	return syscall(SYS_pidfd_getfd, pidfd, fd, flags);
}

int main(void)
{
	int ux[2], tcp[2], p[2], pidfd, fd, self, status, ep = must(epoll_create1(0));
	struct epoll_event ev = { .events = EPOLLIN };
	char b[16] = "";
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	must(pipe(p));
	pid = must(fork());
	if (!pid) {
		int l = listener(AF_INET, 1), numbers[4] = { l, p[1], must(dup(l)), ep };

		fcntl(numbers[2], F_SETFD, FD_CLOEXEC);
		tcp_pair(AF_INET, tcp);
		epoll_ctl(ep, EPOLL_CTL_ADD, tcp[0], &ev);
		write(tcp[1], "x", 1);
		must(write(ux[1], numbers, sizeof(numbers)));
		must(read(ux[1], b, 1));
		_exit(0);
	}
	{
		int numbers[4], port;

		must(read(ux[0], numbers, sizeof(numbers)));
		pidfd = must(syscall(SYS_pidfd_open, pid, 0));
		fd = getfd(pidfd, numbers[0], 0);
		if (fd < 0)
			skip("pidfd_getfd is not allowed here");
		say("%s, flags %d", kind(fd), fcntl(fd, F_GETFD));
		port = local_port(fd);
		say("%s", kind(getfd(pidfd, numbers[1], 0)));
		say("%s", kind(getfd(pidfd, numbers[2], 0)));
		T(getfd(pidfd, 999, 0));
		T(getfd(pidfd, -1, 0));
		T(getfd(pidfd, numbers[0], 1));
		T(getfd(fd, numbers[0], 0));
		ep = getfd(pidfd, numbers[3], 0);
		say("epoll: %d", (int)epoll_wait(ep, &ev, 1, 2000));
		must(write(ux[0], "x", 1));
		must(waitpid(pid, &status, 0));
		T(getfd(pidfd, numbers[0], 0));
		tcp[0] = must(socket(AF_INET, SOCK_STREAM, 0));
		T(connect_port(tcp[0], AF_INET, port));
		T(accept(fd, NULL, NULL) >= 0);
	}
	/* By the number of a thread, where this kernel has that. */
	self = syscall(SYS_pidfd_open, gettid(), O_EXCL /* PIDFD_THREAD */);
	say("of a thread: %s", self < 0 ? "inet stream" : kind(getfd(self, tcp[0], 0)));
	self = must(syscall(SYS_pidfd_open, getpid(), 0));
	tcp[1] = getfd(self, tcp[0], 0);
	nonblocking(tcp[1]);
	say("of oneself: one file %d", !!(fcntl(tcp[0], F_GETFL) & O_NONBLOCK));
	return 0;
}
