// SPDX-License-Identifier: GPL-2.0
/* socketpair() exists for AF_UNIX alone; the pair it makes there works. */
#include "oracle.h"

int main(void)
{
	int sv[2] = { -5, -5 };
	char b[8] = "";

	T(socketpair(AF_INET, SOCK_STREAM, 0, sv));
	T(socketpair(AF_INET, SOCK_DGRAM, 0, sv));
	T(socketpair(AF_INET6, SOCK_STREAM, 0, sv));
	T(socketpair(AF_INET, 77, 0, sv));
	T(socketpair(99, SOCK_STREAM, 0, sv));
	T(socketpair(AF_NETLINK, SOCK_RAW, 0, sv));
	say("untouched: %d %d", sv[0], sv[1]);
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	T(write(sv[0], "hello", 5));
	T(read(sv[1], b, 8));
	say("%s", b);
	T(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, sv));
	T(read(sv[1], b, 8));
	T(send(sv[0], "ab", 2, 0));
	T(send(sv[0], "cd", 2, 0));
	T(recv(sv[1], b, 8, 0));
	return 0;
}
