// SPDX-License-Identifier: GPL-2.0
/* owner.c - F_SETOWN and its relatives, SIGIO, and what /proc/self/fd lists */
#include "t.h"
#include <dirent.h>
#include <linux/sockios.h>

static volatile int got, band, from;

static void on_io(int sig, siginfo_t *si, void *uc)
{
	(void)uc;
	got = sig;
	from = si->si_fd;
	band = si->si_band;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = on_io, .sa_flags = SA_SIGINFO };
	struct f_owner_ex ex = { F_OWNER_TID, gettid() };
	int u[2], pid = getpid(), i, n;
	struct dirent *d;
	struct stat st;
	DIR *dp;

	udp_pair(u);
	sigaction(SIGIO, &sa, NULL);
	sigaction(SIGUSR1, &sa, NULL);
	T(fcntl(u[1], F_GETOWN));
	T(fcntl(u[1], F_SETOWN, pid));
	T(fcntl(u[1], F_GETOWN) == pid);
	T(fcntl(u[1], F_SETOWN, 999999999));
	T(fcntl(u[1], F_GETOWN) == pid);
	T(fcntl(u[1], F_SETFL, O_ASYNC | O_NONBLOCK));
	MUST(send(u[0], "x", 1, 0));
	for (i = 0; i < 100 && !got; i++)
		usleep(1000);
	T(got);
	got = 0;
	T(fcntl(u[1], F_SETSIG, SIGUSR1));
	T(fcntl(u[1], F_GETSIG));
	MUST(send(u[0], "x", 1, 0));
	for (i = 0; i < 100 && !got; i++)
		usleep(1000);
	T(got);
	T(from == u[1]);
	T(band & POLLIN);
	T(fcntl(u[1], F_SETOWN_EX, &ex));
	ex.pid = 0;
	T(fcntl(u[1], F_GETOWN_EX, &ex));
	T(ex.pid == gettid());
	T(ex.type);
	T(ioctl(u[1], FIOSETOWN, &pid));
	i = 0;
	T(ioctl(u[1], SIOCGPGRP, &i));
	T(i == pid);
	T(fcntl(u[1], F_SETOWN, 0));
	T(fcntl(u[1], F_GETOWN));

	for (i = 3, n = 0; i < 2000; i++)
		n += !fstat(i, &st);
	T(n);
	dp = opendir("/proc/self/fd");
	for (n = 0; (d = readdir(dp)); n++)
		if (d->d_name[0] != '.' && atoi(d->d_name) > dirfd(dp))
			printf("%s\n", d->d_name);
	T(n);
	return 0;
}
