// SPDX-License-Identifier: GPL-2.0
/* F_DUPFD_QUERY: are two numbers the same open file? Sockets and files among each other. */
#include "oracle.h"

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY	1027
#endif

int main(void)
{
	int s = bound(AF_INET, SOCK_DGRAM), t = bound(AF_INET, SOCK_DGRAM), e = must(epoll_create1(0));
	int f = must(open("/dev/null", O_RDONLY)), path = must(open("/dev/null", O_PATH));
	int again = must(dup(s));

	if (fcntl(f, F_DUPFD_QUERY, f) != 1)
		skip("no F_DUPFD_QUERY");
	T(fcntl(s, F_DUPFD_QUERY, again));
	T(fcntl(s, F_DUPFD_QUERY, t));
	T(fcntl(s, F_DUPFD_QUERY, e));
	T(fcntl(s, F_DUPFD_QUERY, f));
	T(fcntl(s, F_DUPFD_QUERY, path));
	T(fcntl(f, F_DUPFD_QUERY, s));
	T(fcntl(e, F_DUPFD_QUERY, f));
	T(fcntl(s, F_DUPFD_QUERY, 999));
	T(fcntl(s, F_DUPFD_QUERY, -1));
	T(fcntl(f, F_DUPFD_QUERY, 999));
	T(fcntl(999, F_DUPFD_QUERY, s));
	return 0;
}
