// SPDX-License-Identifier: GPL-2.0
/*
 * young N - forks N children, one after another. Each has the node in a call nearly all the time from its first instruction on,
 * and says "busy PID"; the next one begins when it has been killed.
 */
#include "oracle.h"

int main(int argc, char **argv)
{
	static char b[60000];
	int u[2], n;

	need(argc == 2);
	n = atoi(argv[1]);
	udp_pair(AF_INET, u);
	while (n--) {
		pid_t pid = fork();
		int status;

		need(pid >= 0);
		if (!pid) {
			say("busy %d", getpid());
			for (;;)
				if (send(u[0], b, sizeof(b), 0) < 0 || recv(u[1], b, sizeof(b), MSG_DONTWAIT) < 0)
					_exit(errno == EIO ? 3 : 0);
		}
		must(waitpid(pid, &status, 0));
		need(WIFSIGNALED(status));
	}
	say("end");
	return 0;
}
