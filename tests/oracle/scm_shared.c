// SPDX-License-Identifier: GPL-2.0
/* A passed descriptor is the same open file: flags, options, position, and its end. */
#include "scm.h"

int main(void)
{
	int ux[2], tcp[2], fd, l, c, n, status;
	struct stat a, b;
	char text[64] = "", other[64] = "";
	pid_t pid;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	tcp_pair(AF_INET, tcp);
	must(pass_one(ux[0], tcp[0]));
	fd = take_one(ux[1], MSG_CMSG_CLOEXEC);
	must(fstat(fd, &a));
	must(fstat(tcp[0], &b));
	say("one inode %d", a.st_ino == b.st_ino && a.st_dev == b.st_dev);
	nonblocking(fd);
	say("O_NONBLOCK here too %d", !!(fcntl(tcp[0], F_GETFL) & O_NONBLOCK));
	T(recv(tcp[0], text, 8, 0));
	must(set_int(tcp[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	must(set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1));
	N(int_option(fd, SOL_SOCKET, SO_KEEPALIVE));
	N(int_option(tcp[0], IPPROTO_TCP, TCP_NODELAY));
	T(fcntl(fd, F_GETFD));
	T(fcntl(tcp[0], F_GETFD));
	T(fcntl(tcp[0], F_SETFD, FD_CLOEXEC));
	T(fcntl(fd, F_SETFD, 0));
	T(fcntl(tcp[0], F_GETFD));

	/* One position of a file of the network's in /proc. */
	n = must(open("/proc/net/snmp", O_RDONLY));
	T(read(n, text, 10));
	must(pass_one(ux[0], n));
	c = take_one(ux[1], 0);
	must(pread(n, other, 14, 0));
	must(read(c, text + 10, 4));
	say("goes on where the other stopped %d", !memcmp(text, other, 14));
	T(lseek(n, 0, SEEK_CUR));

	/* Two holders, and the child is the last. */
	pid = must(fork());
	if (!pid) {
		close(fd);
		close(tcp[0]);
		close(tcp[1]);
		fd = take_one(ux[1], 0);
		must(recv(ux[1], text, 1, 0));
		must(write(fd, "bye", 3));
		_exit(0);
	}
	must(pass_one(ux[0], fd));
	close(fd);
	close(tcp[0]);
	say("no end yet: %s", polled(tcp[1]));
	must(send(ux[0], "x", 1, 0));
	must(waitpid(pid, &status, 0));
	T(recv(tcp[1], text, 3, MSG_WAITALL));
	say("%d, %s", status, end_of(tcp[1]));

	/* Shut down by one is shut down for all. */
	tcp_pair(AF_INET6, tcp);
	must(pass_one(ux[0], tcp[0]));
	fd = take_one(ux[1], 0);
	must(shutdown(fd, SHUT_WR));
	T(send(tcp[0], "x", 1, MSG_NOSIGNAL));
	say("%s", end_of(tcp[1]));

	/* The last of a listener's descriptors is closed: its port is free at once. */
	l = listener(AF_INET, 1);
	n = local_port(l);
	must(pass_one(ux[0], l));
	close(l);
	l = take_one(ux[1], 0);
	say("%s", kind(l));
	close(l);
	l = must(socket(AF_INET, SOCK_STREAM, 0));
	{
		union address addr = loopback(AF_INET, n);

		T(bind(l, &addr.sa, sizeof(addr.in)));
	}
	T(listen(l, 1));
	return 0;
}
