// SPDX-License-Identifier: GPL-2.0
/*
 * SIGIO for a process whose first thread has it blocked: another that waits for it gets it, by sigwaitinfo() and by
 * a signalfd, with the descriptor where F_SETSIG asks for that, and the first thread's own wait goes on.
 */
#include "oracle.h"

static int u[2], heard[2], sig;

static void *waits(void *arg)
{
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, sig);
	memset(&info, 0, sizeof(info));
	if (sigwaitinfo(&set, &info) != sig)
		return NULL;
	must(write(heard[1], sig == SIGIO || info.si_fd == u[0] ? "i" : "?", 1));
	return arg;
}

static void signalled(int which)
{
	struct pollfd f;
	sigset_t set;
	pthread_t t;
	char c = '-';

	sig = which;
	sigemptyset(&set);
	sigaddset(&set, sig);
	must(sigprocmask(SIG_BLOCK, &set, NULL));
	udp_pair(AF_INET, u);
	must(fcntl(u[0], F_SETOWN, getpid()));
	if (sig != SIGIO)
		must(fcntl(u[0], F_SETSIG, sig));
	t = spawn(waits, NULL);
	sleep_ms(50);
	must(fcntl(u[0], F_SETFL, O_ASYNC));
	must(send(u[1], "x", 1, 0));
	f = (struct pollfd){ heard[0], POLLIN, 0 };
	T(poll(&f, 1, 3000));
	if (f.revents) {
		must(read(heard[0], &c, 1));
		join(t);
	}
	say("%c", c);
	must(fcntl(u[0], F_SETFL, 0));
	close(u[0]);
	close(u[1]);
}

int main(void)
{
	must(pipe(heard));
	signalled(SIGIO);
	signalled(SIGRTMIN);
	return 0;
}
