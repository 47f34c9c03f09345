// SPDX-License-Identifier: GPL-2.0
/* busy [US] - says "busy PID", then is inside the node's kernel nearly all the time, until killed; with a signal each US microseconds. */
#include "oracle.h"
#include <sys/time.h>

static void nothing(int sig)
{
	(void)sig;
}

static void signals_each(int us)
{
	struct sigaction act = { .sa_handler = nothing, .sa_flags = SA_RESTART };
	struct itimerval each = { { 0, us }, { 0, us } };

	must(sigaction(SIGALRM, &act, NULL));
	must(setitimer(ITIMER_REAL, &each, NULL));
}

int main(int argc, char **argv)
{
	static char b[60000];
	int u[2], p[2];

	if (argc > 1)
		signals_each(atoi(argv[1]));

	udp_pair(AF_INET, u);
	tcp_pair(AF_INET, p);
	say("busy %d", getpid());
	for (;;) {
		if (send(u[0], b, sizeof(b), 0) < 0 || recv(u[1], b, sizeof(b), 0) < 0 ||
		    write(p[0], b, 30000) < 0 || recv(p[1], b, 30000, MSG_WAITALL) < 0) {
			say("error %s", ename(errno));
			return 3;
		}
	}
}
