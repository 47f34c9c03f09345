// SPDX-License-Identifier: GPL-2.0
/* SIGPIPE's default action ends the program; the runner compares how. */
#include "oracle.h"

int main(void)
{
	int p[2];

	tcp_pair(AF_INET, p);
	must(shutdown(p[0], SHUT_WR));
	T(send(p[0], "x", 1, MSG_NOSIGNAL));
	say("now without the flag");
	write(p[0], "x", 1);
	say("not reached");
	return 0;
}
