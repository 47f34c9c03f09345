// SPDX-License-Identifier: GPL-2.0
/* SO_BINDTODEVICE, SO_BINDTOIFINDEX and friends. */
#include "oracle.h"

int main(void)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	char name[IFNAMSIZ] = "";
	socklen_t len = sizeof(name);

	T(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	say("'%s' %d", name, len);
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "nosuch", 7));
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	len = sizeof(name);
	T(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	say("'%s' %d", name, len);
	len = 2;
	T(getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &len));
	N(int_option(fd, SOL_SOCKET, 62 /* SO_BINDTOIFINDEX */));
	T(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 0));
	N(int_option(fd, SOL_SOCKET, 62));
	T(set_int(fd, SOL_SOCKET, 62, 1));
	N(int_option(fd, SOL_SOCKET, 62));
	T(set_int(fd, SOL_SOCKET, 62, 99));
	T(set_int(fd, SOL_SOCKET, 62, -1));
	T(connect_port(fd, AF_INET, 9));
	return 0;
}
