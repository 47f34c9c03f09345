// SPDX-License-Identifier: GPL-2.0
/* Sockets as fstat, /proc/self/fd and their like show them. */
#include "oracle.h"

int main(void)
{
	int p[2], d, e = must(epoll_create1(0));
	struct stat a, b;
	char path[64], link[64] = "";
	ssize_t n;

	tcp_pair(AF_INET, p);
	d = must(dup(p[0]));
	must(fstat(p[0], &a));
	must(fstat(p[1], &b));
	say("mode %o, own inode each %d", a.st_mode, a.st_ino != b.st_ino);
	must(fstat(d, &b));
	say("duplicate has the same %d", a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	must(fstatat(p[0], "", &b, AT_EMPTY_PATH));
	say("fstatat agrees %d", a.st_ino == b.st_ino);
	{
		struct statx sx;

		T(statx(p[0], "", AT_EMPTY_PATH, STATX_BASIC_STATS, &sx));
		say("statx agrees %d", sx.stx_ino == a.st_ino && sx.stx_mode == a.st_mode);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	n = readlink(path, link, sizeof(link) - 1);
	say("link %.8s, with the inode %d", n > 0 ? link : ename(errno),
	    strtoul(link + 8, NULL, 10) == a.st_ino);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", e);
	memset(link, 0, sizeof(link));
	n = readlink(path, link, sizeof(link) - 1);
	say("link %s", n > 0 ? link : ename(errno));
	must(fstat(e, &b));
	say("epoll mode %o", b.st_mode);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p[0]);
	T(open(path, O_RDWR));
	T(access(path, F_OK));
	return 0;
}
