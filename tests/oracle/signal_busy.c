// SPDX-License-Identifier: GPL-2.0
/* Many signals during many calls: none is lost, no call breaks. */
#include "oracle.h"
#include <sys/time.h>

static volatile sig_atomic_t alarms;

static void on_alarm(int signo)
{
	alarms++;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval it = { { 0, 1000 }, { 0, 1000 } };
	int u[2], failed = 0, p[2];
	char b[64];
	double start = seconds();

	udp_pair(AF_INET, u);
	tcp_pair(AF_INET, p);
	must(sigaction(SIGALRM, &sa, NULL));
	must(setitimer(ITIMER_REAL, &it, NULL));
	while (alarms < 200 && seconds() - start < 10) {
		failed += send(u[0], b, 64, 0) != 64;
		failed += recv(u[1], b, 64, 0) != 64;
		failed += write(p[0], b, 32) != 32;
		failed += recv(p[1], b, 32, MSG_WAITALL) != 32;
	}
	memset(&it, 0, sizeof(it));
	must(setitimer(ITIMER_REAL, &it, NULL));
	N(failed);
	say("signals came: %d", alarms >= 200);
	return 0;
}
