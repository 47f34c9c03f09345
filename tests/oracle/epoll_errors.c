// SPDX-License-Identifier: GPL-2.0
/* Arguments that the epoll calls refuse. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), e2 = must(epoll_create1(EPOLL_CLOEXEC)), s = bound(AF_INET, SOCK_DGRAM);
	int file = must(open("/proc/self/exe", O_RDONLY)), chain[8];
	struct epoll_event ev = { .events = EPOLLIN };

	T(epoll_create(0));
	T(epoll_create(-1));
	OK(epoll_create(1));
	T(epoll_create1(0x1234));
	N(fcntl(e, F_GETFD));
	N(fcntl(e2, F_GETFD));
	T(control(e, EPOLL_CTL_ADD, e, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_ADD, -1, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_ADD, 9999, EPOLLIN, 0));
	T(control(-1, EPOLL_CTL_ADD, s, EPOLLIN, 0));
	T(control(s, EPOLL_CTL_ADD, e, EPOLLIN, 0));
	T(control(0, EPOLL_CTL_ADD, s, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_ADD, file, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_MOD, s, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_DEL, s, EPOLLIN, 0));
	T(control(e, 99, s, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_ADD, s, EPOLLIN, 0));
	T(control(e, EPOLL_CTL_ADD, s, EPOLLIN, 0));
	T(epoll_ctl(e, EPOLL_CTL_MOD, s, NULL));
	T(epoll_ctl(e, EPOLL_CTL_DEL, s, NULL));
	T(epoll_ctl(e, EPOLL_CTL_ADD, s, NULL));
	T(epoll_wait(e, &ev, 0, 0));
	T(epoll_wait(e, &ev, -1, 0));
	T(epoll_wait(e, &ev, INT32_MAX, 0));
	T(epoll_wait(e, NULL, 1, 0));
	T(epoll_wait(s, &ev, 1, 0));
	T(epoll_wait(-1, &ev, 1, 0));
	T(epoll_wait(0, &ev, 1, 0));
	T(epoll_pwait(e, &ev, 1, 0, NULL));
	T(syscall(SYS_epoll_pwait, e, &ev, 1, 0, (sigset_t *)8, 8));
	T(syscall(SYS_epoll_pwait, e, &ev, 1, 0, &(sigset_t){}, 7));
	T(control(e, EPOLL_CTL_ADD, s, EPOLLIN | EPOLLEXCLUSIVE | EPOLLONESHOT, 0));
	T(control(e, EPOLL_CTL_ADD, s, EPOLLIN | EPOLLEXCLUSIVE, 0));
	T(control(e, EPOLL_CTL_MOD, s, EPOLLIN | EPOLLEXCLUSIVE, 0));
	T(control(e, EPOLL_CTL_MOD, s, EPOLLIN, 0));
	T(read(e, &ev, 8));
	T(write(e, &ev, 8));
	T(lseek(e, 0, SEEK_SET));
	T(recv(e, &ev, 8, 0));

	/* Circles, and chains that are too deep. */
	T(control(e, EPOLL_CTL_ADD, e2, EPOLLIN, 0));
	T(control(e2, EPOLL_CTL_ADD, e, EPOLLIN, 0));
	for (int i = 0; i < 8; i++)
		chain[i] = must(epoll_create1(0));
	for (int i = 0; i < 7; i++)
		say("chain %d: %s", i, control(chain[i], EPOLL_CTL_ADD, chain[i + 1], EPOLLIN, 0) ?
		    ename(errno) : "ok");
	return 0;
}
