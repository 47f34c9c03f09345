// SPDX-License-Identifier: GPL-2.0
/*
 * Options for which the host asks for privileges in its first user namespace, whoever owns
 * the network namespace. On a node its owner has them.
 */
#include "oracle.h"

int main(void)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	T(set_int(fd, SOL_SOCKET, SO_DEBUG, 1));
	N(int_option(fd, SOL_SOCKET, SO_DEBUG));
	T(set_int(fd, SOL_SOCKET, SO_BUSY_POLL, 50));
	N(int_option(fd, SOL_SOCKET, SO_BUSY_POLL));
	T(set_int(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1));
	N(int_option(fd, SOL_SOCKET, SO_PREFER_BUSY_POLL));
	T(set_int(fd, SOL_SOCKET, SO_RCVBUFFORCE, 20000000));
	N(int_option(fd, SOL_SOCKET, SO_RCVBUF) > 20000000);
	T(set_int(fd, SOL_SOCKET, SO_SNDBUFFORCE, 20000000));
	N(int_option(fd, SOL_SOCKET, SO_SNDBUF) > 20000000);
	return 0;
}
