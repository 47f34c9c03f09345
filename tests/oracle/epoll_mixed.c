// SPDX-License-Identifier: GPL-2.0
/* One epoll set with sockets of the network, pipes, eventfd, timerfd, signalfd and AF_UNIX. */
#include "waiting.h"

int main(void)
{
	int e = must(epoll_create1(0)), tcp[2], udp[2], pipes[2], ux[2], ev, tfd, sfd, l;
	struct itimerspec its = { .it_value.tv_nsec = 30000000 };
	struct signalfd_siginfo info;
	sigset_t set;
	uint64_t value = 3;
	char b[16];

	tcp_pair(AF_INET, tcp);
	udp_pair(AF_INET6, udp);
	must(pipe(pipes));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	ev = must(eventfd(0, EFD_NONBLOCK));
	tfd = must(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK));
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	sfd = must(signalfd(-1, &set, SFD_NONBLOCK));
	l = listener(AF_INET, 4);

	add(e, tcp[0], EPOLLIN, 1);
	add(e, udp[0], EPOLLIN, 2);
	add(e, pipes[0], EPOLLIN, 3);
	add(e, ux[0], EPOLLIN, 4);
	add(e, ev, EPOLLIN, 5);
	add(e, tfd, EPOLLIN, 6);
	add(e, sfd, EPOLLIN, 7);
	add(e, l, EPOLLIN, 8);
	add(e, pipes[1], EPOLLOUT, 9);
	waited("start", e, 0);
	T(control(e, EPOLL_CTL_MOD, pipes[1], 0, 9));
	waited("quiet", e, 0);

	must(write(tcp[1], "x", 1));
	waited("tcp", e, 1000);
	must(write(pipes[1], "x", 1));
	sleep_ms(20);
	waited("tcp and pipe", e, 1000);
	must(read(tcp[0], b, 16));
	waited("pipe", e, 1000);
	must(read(pipes[0], b, 16));
	waited("none", e, 0);
	must(write(ev, &value, 8));
	waited("eventfd", e, 1000);
	must(send(udp[1], "x", 1, 0));
	must(write(ux[1], "x", 1));
	sleep_ms(20);
	waited("eventfd, udp, unix", e, 1000);
	must(read(ev, &value, 8));
	N(value);
	must(recv(udp[0], b, 16, 0));
	must(read(ux[0], b, 16));
	waited("none", e, 0);
	must(timerfd_settime(tfd, 0, &its, NULL));
	waited("timerfd", e, 2000);
	must(read(tfd, &value, 8));
	N(value);
	kill(getpid(), SIGUSR1);
	waited("signalfd", e, 1000);
	must(read(sfd, &info, sizeof(info)));
	say("signal %d", info.ssi_signo);
	must(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, local_port(l)));
	waited("listener", e, 1000);
	close(must(accept(l, NULL, NULL)));
	close(tcp[1]);
	close(pipes[1]);
	close(ux[1]);
	sleep_ms(20);
	waited("all closed", e, 1000);
	return 0;
}
