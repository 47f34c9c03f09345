// SPDX-License-Identifier: GPL-2.0
/* dup, dup2, dup3, F_DUPFD on sockets: sharing, replacing across owners, flags, errors. */
#include "oracle.h"

int main(void)
{
	int u[2], d, f = must(open("/dev/null", O_RDWR)), n;
	char b[8] = "";

	udp_pair(AF_INET, u);
	d = must(dup(u[0]));
	T(send(d, "dup", 3, 0));
	T(recv(u[1], b, 8, 0));
	must(fcntl(d, F_SETFL, O_NONBLOCK));
	say("shared file flags %d", !!(fcntl(u[0], F_GETFL) & O_NONBLOCK));
	must(fcntl(d, F_SETFD, FD_CLOEXEC));
	say("own descriptor flags %d %d", fcntl(u[0], F_GETFD), fcntl(d, F_GETFD));
	close(u[0]);
	T(send(d, "still", 5, 0));
	T(recv(u[1], b, 8, 0));
	T(send(u[0], "x", 1, 0));

	T(dup2(d, d) == d);
	T(dup3(d, d, 0));
	T(dup3(d, 50, O_NONBLOCK));
	T(dup2(d, -1));
	T(dup2(-1, 50));
	T(dup2(d, 1 << 30));
	T(dup(-1));
	T(dup2(9999, d));
	T(dup2(d, 50));		/* a free number */
	N(fcntl(50, F_GETFD));
	T(send(50, "fifty", 5, 0));
	T(recv(u[1], b, 8, 0));
	T(dup3(d, 51, O_CLOEXEC));
	N(fcntl(51, F_GETFD));
	T(dup2(d, f) == f);	/* over a file of the host */
	T(send(f, "file", 4, 0));
	T(recv(u[1], b, 8, 0));
	n = must(open("/dev/null", O_RDWR));
	T(dup2(n, 50));		/* the host's file over a socket */
	T(send(50, "x", 1, 0));
	T(write(50, "x", 1));
	T(fcntl(d, F_DUPFD, 100));
	T(fcntl(d, F_DUPFD, 100));
	T(fcntl(d, F_DUPFD_CLOEXEC, 100));
	N(fcntl(102, F_GETFD));
	T(fcntl(d, F_DUPFD, -1));
	T(fcntl(d, F_DUPFD, 1 << 30));
	T(send(101, "hundred", 7, 0));
	T(recv(u[1], b, 8, 0));
	T(dup2(100, 101));
	T(dup2(u[1], 1000));
	T(send(101, "far", 3, 0));
	T(recv(1000, b, 8, 0));
	/* Standard output, taken away and given back. */
	n = must(dup(1));
	must(dup2(d, 1));
	must(write(1, "out", 3));
	must(dup2(n, 1));
	T(recv(u[1], b, 8, 0));
	say("%.3s", b);
	return 0;
}
