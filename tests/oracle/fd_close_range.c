// SPDX-License-Identifier: GPL-2.0
/* close_range() across descriptors of both owners, and its flags. */
#include "oracle.h"
#include <linux/close_range.h>

static void show(int from, int to)
{
	for (int i = from; i <= to; i++) {
		int f = fcntl(i, F_GETFD);

		printf("%s ", f < 0 ? "-" : f & FD_CLOEXEC ? "cloexec" : "open");
	}
	printf("\n");
}

static void refill(int from, int to)
{
	for (int i = from; i <= to; i++) {
		int fd = i & 1 ? must(socket(AF_INET, SOCK_DGRAM, 0)) : must(open("/dev/null", O_RDONLY));

		if (fd != i) {
			must(dup2(fd, i));
			close(fd);
		}
	}
}

int main(void)
{
	refill(40, 47);
	show(40, 47);
	T(syscall(SYS_close_range, 42, 44, 0));
	show(40, 47);
	T(syscall(SYS_close_range, 40, 47, CLOSE_RANGE_CLOEXEC));
	show(40, 47);
	T(syscall(SYS_close_range, 47, 40, 0));
	T(syscall(SYS_close_range, 40, 47, 99));
	refill(40, 47);
	T(syscall(SYS_close_range, 43, ~0u, 0));
	show(40, 47);
	refill(40, 47);
	T(syscall(SYS_close_range, 41, 42, CLOSE_RANGE_UNSHARE));
	show(40, 47);
	T(close(40));
	T(close(40));
	T(close(45));
	T(close(45));
	closefrom(40);
	show(40, 47);
	N(socket(AF_INET, SOCK_DGRAM, 0) >= 0);

	/* A number that was a socket's, and the last of its range, is a file's. */
	refill(40, 47);
	T(syscall(SYS_close_range, 44, 47, 0));
	N(fcntl(must(open("/proc/self/comm", O_RDONLY)), F_DUPFD, 47));
	N(read(47, (char[1]){ 0 }, 1));
	return 0;
}
