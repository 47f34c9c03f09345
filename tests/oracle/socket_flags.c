// SPDX-License-Identifier: GPL-2.0
/* SOCK_NONBLOCK and SOCK_CLOEXEC end up in the descriptor's and the file's flags. */
#include "oracle.h"

static void show(int type)
{
	int fd = must(socket(AF_INET, type, 0));
	int fl = must(fcntl(fd, F_GETFL)), fdf = must(fcntl(fd, F_GETFD));

	say("type %#x: access %d nonblock %d cloexec %d", type, fl & O_ACCMODE,
	    !!(fl & O_NONBLOCK), !!(fdf & FD_CLOEXEC));
	T(fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC | O_APPEND | O_RDONLY));
	fl = fcntl(fd, F_GETFL);
	say("now: access %d nonblock %d async %d append %d", fl & O_ACCMODE,
	    !!(fl & O_NONBLOCK), !!(fl & O_ASYNC), !!(fl & O_APPEND));
	T(fcntl(fd, F_SETFL, 0));
	say("now: flags %#x", fcntl(fd, F_GETFL));
	T(fcntl(fd, F_SETFD, FD_CLOEXEC));
	T(fcntl(fd, F_GETFD));
	T(fcntl(fd, F_SETFD, 0));
	T(fcntl(fd, F_GETFD));
	close(fd);
}

int main(void)
{
	int on = 1, off = 0, fd;

	show(SOCK_STREAM);
	show(SOCK_STREAM | SOCK_NONBLOCK);
	show(SOCK_DGRAM | SOCK_CLOEXEC);
	show(SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC);

	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(ioctl(fd, FIONBIO, &on));
	say("nonblock %d", !!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	T(ioctl(fd, FIONBIO, &off));
	say("nonblock %d", !!(fcntl(fd, F_GETFL) & O_NONBLOCK));
	T(ioctl(fd, FIOCLEX));
	T(fcntl(fd, F_GETFD));
	T(ioctl(fd, FIONCLEX));
	T(fcntl(fd, F_GETFD));
	T(ioctl(fd, FIOASYNC, &on));
	say("async %d", !!(fcntl(fd, F_GETFL) & O_ASYNC));
	T(fcntl(fd, 9999, 0));
	T(fcntl(fd, F_SETPIPE_SZ, 4096));
	T(fcntl(fd, F_GETSIG));
	T(fcntl(fd, F_SETSIG, 65));
	T(fcntl(fd, F_GETLEASE));
	T(fcntl(fd, F_ADD_SEALS, 0));
	return 0;
}
