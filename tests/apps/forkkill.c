// SPDX-License-Identifier: GPL-2.0
/*
 * forkkill MICROSECONDS - forks children that hold a connection, kills each after that
 * time and sees the connection end. Says "fine N hung N", or "poisoned".
 */
#include "oracle.h"

int main(int argc, char **argv)
{
	int fine = 0, hung = 0, us;

	need(argc == 2);
	us = atoi(argv[1]);
	for (int i = 0; i < 20; i++) {
		int p[2], status;
		pid_t pid;

		tcp_pair(AF_INET, p);
		pid = fork();
		if (pid < 0) {	/* never kill(-1) */
			say("poisoned");
			return errno == EIO ? 0 : 1;
		}
		if (!pid) {
			close(p[0]);
			for (;;)
				pause();
		}
		close(p[1]);
		usleep(us);
		must(kill(pid, SIGKILL));
		must(waitpid(pid, &status, 0));
		switch (poll(&(struct pollfd){ p[0], POLLIN }, 1, 2000)) {
		case 1:
			fine++;
			break;
		case 0:
			hung++;
			break;
		default:
			say("poisoned");
			return 0;
		}
		close(p[0]);
	}
	say("fine %d hung %d", fine, hung);
	return 0;
}
