// SPDX-License-Identifier: GPL-2.0
/* sendfile() and copy_file_range() between sockets and unsuitable files, and from a socket into a pipe. */
#include "oracle.h"
#include <sys/sendfile.h>

static void into_pipe(int s[2])
{
	char b[16] = "";
	off_t at = 0;
	int p[2];

	must(pipe(p));
	must(send(s[1], "hello, world", 12, 0));
	must(wait_for(s[0], POLLIN));
	T(sendfile(p[1], s[0], NULL, 0));
	T(sendfile(p[1], s[0], NULL, 5));
	T(read(p[0], b, sizeof(b)));
	T(sendfile(p[1], s[0], &at, 5));
	T(sendfile(p[1], s[0], (off_t *)8, 5));
	T(sendfile(p[0], s[0], NULL, 5));
	T(sendfile(p[1], s[0], NULL, 100));
	T(read(p[0], b, sizeof(b)));
	say("%.7s", b);
	nonblocking(s[0]);
	T(sendfile(p[1], s[0], NULL, 5));
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	must(send(s[1], "x", 1, 0));
	T(sendfile(p[1], s[0], NULL, 5));
	close(p[1]);
}

int main(void)
{
	int s[2], f = memfd_create("file", 0), dir = must(open("/usr", O_RDONLY | O_DIRECTORY));
	int event = must(eventfd(5, 0)), timer = must(timerfd_create(CLOCK_MONOTONIC, 0)), p[2];
	int sysctl = must(open("/proc/sys/net/core/somaxconn", O_RDONLY)), null = must(open("/dev/null", O_WRONLY));
	int path = must(open("/dev/null", O_PATH)), netdir = must(open("/proc/sys/net", O_RDONLY | O_DIRECTORY));
	int rdonly = must(open("/proc/self/exe", O_RDONLY));
	char name[32];
	off_t at = 0;

	alarm(10);
	need(f >= 0);
	must(write(f, "file", 4));
	snprintf(name, sizeof(name), "/proc/self/fd/%d", f);
	tcp_pair(AF_INET, s);
	must(pipe(p));
	T(sendfile(s[0], dir, NULL, 5));
	T(sendfile(s[0], dir, &at, 5));
	T(sendfile(s[0], event, NULL, 8));
	T(sendfile(s[0], event, &at, 8));
	T(sendfile(s[0], timer, NULL, 8));
	T(sendfile(s[0], p[0], NULL, 8));
	T(sendfile(s[0], p[0], &at, 8));
	T(sendfile(999, s[0], NULL, 4));
	T(sendfile(path, s[0], NULL, 4));
	T(sendfile(rdonly, s[0], NULL, 4));
	T(sendfile(null, s[0], NULL, 4));
	T(sendfile(s[1], s[0], NULL, 4));
	T(sendfile(s[0], 999, NULL, 4));
	T(sendfile(must(open(name, O_WRONLY | O_APPEND)), sysctl, NULL, 2));
	T(lseek(sysctl, 0, SEEK_CUR));
	T(sendfile(rdonly, sysctl, NULL, 2));
	T(sendfile(path, sysctl, NULL, 2));
	T(sendfile(f, sysctl, NULL, 2));
	T(lseek(sysctl, 0, SEEK_CUR));
	T(sendfile(p[1], sysctl, NULL, 2));
	into_pipe(s);

	T(copy_file_range(-1, NULL, s[0], NULL, 4, 0));
	T(copy_file_range(s[0], NULL, -1, NULL, 4, 0));
	T(copy_file_range(path, NULL, s[0], NULL, 4, 0));
	T(copy_file_range(f, NULL, s[0], NULL, 4, 0));
	T(copy_file_range(s[0], NULL, f, NULL, 4, 0));
	T(copy_file_range(dir, NULL, s[0], NULL, 4, 0));
	T(copy_file_range(s[0], NULL, dir, NULL, 4, 0));
	T(copy_file_range(netdir, NULL, f, NULL, 4, 0));
	T(copy_file_range(dir, NULL, s[0], NULL, 4, 8));
	T(copy_file_range(sysctl, NULL, f, NULL, 4, 0));
	T(copy_file_range(sysctl, NULL, f, NULL, 0, 0));
	T(copy_file_range(sysctl, NULL, rdonly, NULL, 4, 0));
	T(copy_file_range(f, NULL, sysctl, NULL, 4, 0));
	T(copy_file_range(sysctl, NULL, p[1], NULL, 4, 0));
	return 0;
}
