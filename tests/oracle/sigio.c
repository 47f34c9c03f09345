// SPDX-License-Identifier: GPL-2.0
/* SIGIO: O_ASYNC with F_SETOWN and F_SETSIG, and SIGURG for urgent data. */
#include "oracle.h"

static volatile sig_atomic_t io, urg, rt, rt_fd_right, rt_band;
static int p[2];

static void on_io(int signo)
{
	io++;
}

static void on_urg(int signo)
{
	urg++;
}

static void on_rt(int signo, siginfo_t *info, void *context)
{
	rt++;
	rt_fd_right = info->si_fd == p[0];
	rt_band = info->si_band;
}

static void settle(volatile sig_atomic_t *flag)
{
	for (int i = 0; i < 200 && !*flag; i++)
		sleep_ms(5);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_io };
	char b[8];
	struct f_owner_ex own;

	must(sigaction(SIGIO, &sa, NULL));
	sa.sa_handler = on_urg;
	must(sigaction(SIGURG, &sa, NULL));
	sa.sa_sigaction = on_rt;
	sa.sa_flags = SA_SIGINFO;
	must(sigaction(SIGRTMIN + 1, &sa, NULL));
	tcp_pair(AF_INET, p);
	T(fcntl(p[0], F_GETOWN));
	T(fcntl(p[0], F_SETOWN, getpid()));
	say("owner is me %d", fcntl(p[0], F_GETOWN) == getpid());
	T(fcntl(p[0], F_GETOWN_EX, &own));
	say("type %d, me %d", own.type, own.pid == getpid());
	must(write(p[1], "x", 1));
	sleep_ms(30);
	say("without O_ASYNC: %d", io);
	must(recv(p[0], b, 8, 0));
	T(fcntl(p[0], F_SETFL, O_ASYNC));
	io = 0;
	must(write(p[1], "x", 1));
	settle(&io);
	say("with it: %d", io > 0);
	must(recv(p[0], b, 8, 0));
	T(fcntl(p[0], F_SETSIG, SIGRTMIN + 1));
	say("%d", fcntl(p[0], F_GETSIG) == SIGRTMIN + 1);
	must(write(p[1], "x", 1));
	settle(&rt);
	say("real-time signal %d, descriptor right %d, band %s", rt > 0, rt_fd_right, events(rt_band & POLLIN));
	must(recv(p[0], b, 8, 0));
	must(send(p[1], "!", 1, MSG_OOB));
	settle(&urg);
	say("urgent %d", urg > 0);
	T(fcntl(p[0], F_SETOWN, 0x3fffffff));
	T(fcntl(p[0], F_SETOWN, 0));
	T(ioctl(p[0], FIOSETOWN, &(int){ getpid() }));
	return 0;
}
