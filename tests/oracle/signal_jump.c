// SPDX-License-Identifier: GPL-2.0
/* A handler that leaves a waiting call by siglongjmp(); the socket is none the worse. */
#include "oracle.h"
#include <setjmp.h>

static sigjmp_buf back;

static void on_alarm(int signo)
{
	siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval it = { .it_value.tv_usec = 50000 };
	int u[2];
	char b[16] = "";

	udp_pair(AF_INET, u);
	must(sigaction(SIGALRM, &sa, NULL));
	for (int i = 0; i < 20; i++) {
		if (!sigsetjmp(back, 1)) {
			must(setitimer(ITIMER_REAL, &it, NULL));
			recv(u[1], b, 16, 0);
			say("not reached");
		}
		must(send(u[0], "after", 5, 0));
		need(recv(u[1], b, 16, 0) == 5);
		it.it_value.tv_usec = 2000;
	}
	say("jumped out twenty times; %s", b);
	return 0;
}
