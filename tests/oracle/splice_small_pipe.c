// SPDX-License-Identifier: GPL-2.0
/* splice() from a socket that has more than the pipe takes: a part, without a wait for a reader. */
#include "oracle.h"

int main(void)
{
	static char b[20000];
	int p[2], small[2], usual[2];

	tcp_pair(AF_INET, p);
	must(pipe(small));
	must(pipe(usual));
	must(fcntl(small[1], F_SETPIPE_SZ, 4096));
	must(write(p[0], b, sizeof(b)));
	need(wait_for(p[1], POLLIN));
	sleep_ms(50);
	alarm(5);
	say("a part %d", splice(p[1], NULL, small[1], NULL, sizeof(b), SPLICE_F_NONBLOCK) > 0);
	T(splice(p[1], NULL, small[1], NULL, sizeof(b), SPLICE_F_NONBLOCK));
	say("the rest %d", splice(p[1], NULL, usual[1], NULL, sizeof(b), 0) > 4096);
	return 0;
}
