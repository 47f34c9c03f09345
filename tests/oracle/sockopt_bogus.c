// SPDX-License-Identifier: GPL-2.0
/* Levels and options that do not exist. */
#include "oracle.h"

int main(void)
{
	static const int levels[] = { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_UDP,
				      IPPROTO_RAW, IPPROTO_ICMP, SOL_NETLINK, SOL_PACKET, 999, -1 };
	static const struct { int family, type; } kinds[] = {
		{ AF_INET, SOCK_STREAM }, { AF_INET, SOCK_DGRAM }, { AF_INET6, SOCK_STREAM },
		{ AF_INET6, SOCK_DGRAM }, { AF_NETLINK, SOCK_RAW }, { AF_PACKET, SOCK_RAW },
	};
	int value = 1;
	socklen_t len;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		int fd = must(socket(kinds[k].family, kinds[k].type, 0));

		for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
			const char *set = setsockopt(fd, levels[i], 9999, &value, 4) ? ename(errno) : "ok";
			const char *get = (len = 4, getsockopt(fd, levels[i], 9999, &value, &len)) ? ename(errno) : "ok";

			say("%d/%d level %d: set %s get %s", kinds[k].family, kinds[k].type, levels[i], set, get);
		}
		T(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, NULL, 4));
		T(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, NULL, &len));
		T(getsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &value, NULL));
	}
	T(setsockopt(-1, SOL_SOCKET, SO_REUSEADDR, &value, 4));
	T(setsockopt(0, SOL_SOCKET, SO_REUSEADDR, &value, 4));
	T(getsockopt(-1, SOL_SOCKET, SO_REUSEADDR, &value, &len));
	T(getsockopt(0, SOL_SOCKET, SO_REUSEADDR, &value, &len));
	return 0;
}
