// SPDX-License-Identifier: GPL-2.0
/* dup2() over a registered descriptor, host's over node's and the other way. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), u[2], pipes[2], number;
	char b[4];

	udp_pair(AF_INET, u);
	must(pipe(pipes));
	add(e, u[0], EPOLLIN, 1);
	must(write(pipes[1], "x", 1));
	number = u[0];
	T(dup2(pipes[0], number) == number);
	waited("socket replaced", e, 20);
	T(read(number, b, 4));
	T(control(e, EPOLL_CTL_MOD, number, EPOLLIN, 2));
	T(control(e, EPOLL_CTL_ADD, number, EPOLLIN, 2));
	must(write(pipes[1], "y", 1));
	waited("pipe under the number", e, 1000);

	u[0] = bound(AF_INET, SOCK_DGRAM);
	must(connect_port(u[1], AF_INET, local_port(u[0])));
	T(dup2(u[0], number) == number);
	must(send(u[1], "z", 1, 0));
	sleep_ms(10);
	T(control(e, EPOLL_CTL_ADD, number, EPOLLIN, 3));
	T(recv(number, b, 4, MSG_DONTWAIT));
	close(pipes[0]);
	close(number);
	waited("everything closed but one socket", e, 20);
	return 0;
}
