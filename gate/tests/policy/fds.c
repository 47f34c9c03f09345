// SPDX-License-Identifier: GPL-2.0
/* fds.c - numbers, duplicates, close-on-exec and limits of mixed descriptors */
#include "t.h"
#include <linux/close_range.h>

static int type_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? -errno : (int)(st.st_mode & S_IFMT);
}

int main(void)
{
	struct rlimit lim = { 64, 64 }, old;
	int s, p[2], sp[2], i, fd, flags, one = 1;
	char path[64], link[64], c;
	ssize_t n;

	close_range(3, 900, 0);
	T(s = socket(AF_INET, SOCK_STREAM, 0));
	T(pipe(p));
	T(p[0]);
	T(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	T(fcntl(6, F_GETFD));
	T(fcntl(3, F_GETFD));
	T(close(4));
	T(epoll_create1(0));			/* takes 4 */
	T(dup(3));
	T(fcntl(7, F_GETFL));
	T(fcntl(3, F_SETFL, O_RDWR | O_NONBLOCK));
	T(fcntl(7, F_GETFL));
	T(dup2(3, 3));
	T(dup2(3, 20));
	T(type_of(20) == S_IFSOCK);
	T(dup2(5, 20));				/* the pipe's end over a socket */
	T(type_of(20) == S_IFIFO);
	signal(SIGPIPE, SIG_IGN);
	T(write(20, "x", 1));		/* its reader has been closed */
	T(dup2(3, 20));				/* and back */
	T(type_of(20) == S_IFSOCK);
	T(dup3(3, 21, O_CLOEXEC));
	T(fcntl(21, F_GETFD));
	T(dup3(3, 3, 0));
	T(dup3(3, 22, 1));
	T(dup2(99, 3));
	T(dup2(3, -1));
	T(fcntl(3, F_DUPFD, 30));
	T(fcntl(3, F_DUPFD_CLOEXEC, 30));
	T(fcntl(31, F_GETFD));
	T(fcntl(31, F_SETFD, 0));
	T(fcntl(31, F_GETFD));
	T(ioctl(31, FIOCLEX));
	T(fcntl(31, F_GETFD));
	T(ioctl(31, FIONCLEX));
	T(fcntl(31, F_GETFD));
	T(fcntl(3, F_DUPFD, -1));
	T(ioctl(3, FIONBIO, &one));
	T(fcntl(3, F_GETFL));
	T(close(50));
	T(close(3));
	T(close(3));
	T(open("/dev/null", O_RDONLY));		/* takes 3 */
	T(read(3, &c, 1));
	T(close_range(20, 31, CLOSE_RANGE_CLOEXEC));
	T(fcntl(20, F_GETFD));
	T(close_range(20, 31, 0));
	T(fcntl(20, F_GETFD));
	T(fcntl(20, F_GETFL));
	T(close_range(30, 20, 0));
	T(close_range(30, 40, 8));
	T(fcntl(7, F_GETFL));

	snprintf(path, sizeof(path), "/proc/self/fd/%d", 7);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = 0;
	printf("link %.8s\n", link);
	T(open("/proc/self/fd/7", O_RDWR));
	T(open("/dev/fd/7", O_RDWR));

	T(socketpair(AF_INET, SOCK_STREAM, 0, sp));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sp));
	T(socket(AF_INET, 77, 0));
	T(socket(99, SOCK_STREAM, 0));
	T(socket(AF_INET, SOCK_STREAM, 99));
	T(accept(7, NULL, NULL));
	T(accept(p[1], NULL, NULL));
	T(accept(60, NULL, NULL));
	T(dup(5));

	T(getrlimit(RLIMIT_NOFILE, &old));
	T(setrlimit(RLIMIT_NOFILE, &lim));
	for (i = 0; i < 100; i++) {
		fd = socket(AF_INET, SOCK_DGRAM, 0);
		if (fd < 0)
			break;
	}
	printf("%d sockets, then %s\n", i, strerrorname_np(errno));
	T(dup(7));
	T(dup2(7, 63));
	T(dup2(7, 64));
	T(epoll_create1(0));
	T(epoll_create(0));
	T(epoll_create1(1));
	close_range(3, 63, 0);
	T(socket(AF_INET, SOCK_DGRAM, 0));

	/* what an exec'ed program finds */
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	flags = fcntl(fd, F_GETFD);
	T(flags);
	return 0;
}
