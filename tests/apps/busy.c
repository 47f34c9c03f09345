// SPDX-License-Identifier: GPL-2.0
/* busy - says "busy PID", then is inside the node's kernel nearly all the time, until killed. */
#include "oracle.h"

int main(void)
{
	static char b[60000];
	int u[2], p[2];

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
