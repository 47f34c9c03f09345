// SPDX-License-Identifier: GPL-2.0
/* RLIMIT_NOFILE: EMFILE from every call that makes a descriptor; nothing is lost by it. */
#include "oracle.h"

int main(void)
{
	struct rlimit r;
	int l = listener(AF_INET, 8), c[3], sv[2], e = must(epoll_create1(0)), top, fill;

	for (int i = 0; i < 3; i++) {
		c[i] = must(socket(AF_INET, SOCK_STREAM, 0));
		must(connect_port(c[i], AF_INET, local_port(l)));
	}
	must(getrlimit(RLIMIT_NOFILE, &r));
	top = must(dup(0));
	r.rlim_cur = top + 4;
	must(setrlimit(RLIMIT_NOFILE, &r));
	fill = 0;
	while (socket(AF_INET, SOCK_DGRAM, 0) >= 0)
		fill++;
	say("then %s after %d", ename(errno), fill);
	T(socket(AF_INET, SOCK_STREAM, 0));
	T(socket(AF_UNIX, SOCK_STREAM, 0));
	T(open("/dev/null", O_RDONLY));
	T(dup(l));
	T(fcntl(l, F_DUPFD, 0));
	T(accept(l, NULL, NULL));
	T(accept4(l, NULL, NULL, SOCK_NONBLOCK));
	T(epoll_create1(0));
	T(eventfd(0, 0));
	T(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	T(dup2(l, r.rlim_cur));
	T(dup2(l, top) == top);
	T(fcntl(l, F_DUPFD, (int)r.rlim_cur));
	close(top);
	OK(accept(l, NULL, NULL));	/* were connections lost by the failures? */
	r.rlim_cur += 10;
	must(setrlimit(RLIMIT_NOFILE, &r));
	nonblocking(l);
	OK(accept(l, NULL, NULL));
	OK(accept(l, NULL, NULL));
	OK(epoll_ctl(e, EPOLL_CTL_ADD, l, &(struct epoll_event){ .events = EPOLLIN }));
	return 0;
}
