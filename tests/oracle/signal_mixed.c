// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that come again and again, at all instants, each end a wait for a socket and a pipe, while the timers
 * of others run out all the time. A wait that goes on after its signal blocks the next ones too.
 */
#include "oracle.h"
#include <signal.h>
#include <sys/select.h>
#include <sys/wait.h>

#define SIGNALS		15000
#define PATIENCE	5	/* s: a sender may lack a CPU for long */

static volatile sig_atomic_t handled;
static int udp, pipes[2];

static void handler(int sig)
{
	handled++;
}

static int wait_for_both(time_t s, suseconds_t us)
{
	struct timeval tv = { s, us };
	fd_set r;

	FD_ZERO(&r);
	FD_SET(udp, &r);
	FD_SET(pipes[0], &r);
	return select(FD_SETSIZE, &r, NULL, NULL, &tv);
}

static pid_t another(void (*run)(pid_t parent))
{
	pid_t parent = getpid(), pid = must(fork());

	if (!pid) {
		while (getppid() == parent)
			run(parent);
		_exit(0);
	}
	return pid;
}

static void sends(pid_t parent)
{
	for (int i = 0; i < 100; i++) {
		kill(parent, SIGUSR1);
		usleep(10 + i % 10);
	}
}

static void times_out(pid_t parent)
{
	(void)parent;
	for (int i = 0; i < 100; i++)
		wait_for_both(0, 50);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = SA_RESTART };
	int lost = 0;
	pid_t pids[3];

	must(pipe(pipes));
	udp = bound(AF_INET, SOCK_DGRAM);
	must(sigaction(SIGUSR1, &sa, NULL));
	pids[0] = another(times_out);
	pids[1] = another(times_out);
	pids[2] = another(sends);
	while (!lost && handled < SIGNALS)
		lost += !wait_for_both(PATIENCE, 0);
	N(lost);
	for (int i = 0; i < 3; i++)
		must(kill(pids[i], SIGKILL));
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}
