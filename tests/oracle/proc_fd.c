// SPDX-License-Identifier: GPL-2.0
/* /proc/self/fd, /proc/self/fdinfo and /dev/fd about sockets, and about a child's. */
#include "scm.h"

#include <dirent.h>

static const char *link_of(const char *format, int a, int b)
{
	static char text[4][300];
	static unsigned int turn;
	char *out = text[turn++ % 4], path[64];
	ssize_t n;

	snprintf(path, sizeof(path), format, a, b);
	n = readlink(path, out, 299);
	if (n < 0)
		return ename(errno);
	out[n] = 0;
	return out;
}

/* Does that folder list exactly the descriptors that are open, its own included? */
static bool listed(const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *e;
	int in = 0, out = 0;

	if (!d)
		return false;
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		in++;
		out += !is_open(atoi(e->d_name));
	}
	for (int fd = 0; fd < 1024; fd++)
		in -= is_open(fd);
	closedir(d);
	return !in && !out;
}

static void opened(const char *format, int fd, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), format, fd);
	fd = open(path, flags);
	printf(format, 0);
	say(" -> %s", fd < 0 ? ename(errno) : kind(fd));
	close(fd);
}

int main(void)
{
	int tcp[2], ux[2], ep = must(epoll_create1(0)), n, fd, status;
	char want[64], b[512] = "";
	struct stat st;
	pid_t pid;

	tcp_pair(AF_INET, tcp);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	must(fstat(tcp[0], &st));
	snprintf(want, sizeof(want), "socket:[%lu]", (unsigned long)st.st_ino);
	say("self %d", !strcmp(link_of("/proc/self/fd/%d", tcp[0], 0), want));
	say("dev %d", !strcmp(link_of("/dev/fd/%d", tcp[0], 0), want));
	say("pid %d", !strcmp(link_of("/proc/%d/fd/%d", getpid(), tcp[0]), want));
	say("task %d", !strcmp(link_of("/proc/self/task/%d/fd/%d", gettid(), tcp[0]), want));
	say("thread-self %d", !strcmp(link_of("/proc/thread-self/fd/%d", tcp[0], 0), want));
	say("unix %.8s", link_of("/proc/self/fd/%d", ux[0], 0));
	say("epoll %s", link_of("/proc/self/fd/%d", ep, 0));
	say("closed %s", link_of("/proc/self/fd/%d", 777, 0));
	say("listed %d %d", listed("/proc/self/fd"), listed("/dev/fd"));

	opened("/dev/fd/%d", tcp[0], O_RDWR);
	opened("/proc/self/fd/%d", tcp[0], O_RDONLY);
	opened("/proc/self/fd/%d", ux[0], O_RDWR);
	opened("/dev/fd/%d", 777, O_RDONLY);
	must(dup2(tcp[0], 0));
	T(open("/dev/stdin", O_RDWR));
	n = must(open("/proc/net/snmp", O_RDONLY));
	opened("/proc/self/fd/%d", n, O_RDONLY);

	nonblocking(tcp[0]);
	must(fcntl(tcp[1], F_SETFD, FD_CLOEXEC));
	for (int i = 0; i < 2; i++) {
		char path[64], *at;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", tcp[i]);
		fd = must(open(path, O_RDONLY));
		memset(b, 0, sizeof(b));
		must(read(fd, b, sizeof(b) - 1));
		close(fd);
		at = strstr(b, "flags:");
		say("%.*s", at ? (int)strcspn(at, "\n") : 0, at);
	}

	/* Another process of ours. */
	pid = must(fork());
	if (!pid) {
		fd = must(dup2(tcp[0], 40));
		must(write(ux[1], "x", 1));
		must(read(ux[1], b, 1));
		_exit(0);
	}
	must(read(ux[0], b, 1));
	say("child's %d", !strcmp(link_of("/proc/%d/fd/%d", pid, 40), want));
	say("child's unix %.8s", link_of("/proc/%d/fd/%d", pid, ux[0]));
	say("child's closed %s", link_of("/proc/%d/fd/%d", pid, 777));
	must(write(ux[0], "x", 1));
	must(waitpid(pid, &status, 0));
	say("%d", status);
	return 0;
}
