// SPDX-License-Identifier: GPL-2.0
/* fork(): children share the parent's sockets; closing in one leaves the other's. */
#include "oracle.h"

int main(void)
{
	int p[2], l = listener(AF_INET, 4), status, c, a, port = local_port(l);
	char b[16] = "";
	pid_t pid;

	tcp_pair(AF_INET, p);
	pid = must(fork());
	if (!pid) {
		close(p[1]);
		must(write(p[0], "child", 5));
		must(fcntl(p[0], F_SETFL, O_NONBLOCK));
		close(p[0]);
		a = must(accept(l, NULL, NULL));
		must(write(a, "accepted", 8));
		_exit(read(a, b, 1) == 1 ? b[0] : 99);
	}
	T(read(p[1], b, 5));
	say("%s", b);
	sleep_ms(30);
	say("the file is shared: nonblock %d", !!(fcntl(p[0], F_GETFL) & O_NONBLOCK));
	T(recv(p[1], b, 1, MSG_DONTWAIT));	/* no FIN: the parent still has it */
	close(l);
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect_port(c, AF_INET, port));	/* the child still listens */
	T(read(c, b, 8));
	say("%s", b);
	must(write(c, "*", 1));
	must(waitpid(pid, &status, 0));
	say("child ended with %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	T(read(c, b, 8));	/* its exit closed its end */
	close(p[0]);
	T(recv(p[1], b, 1, 0));

	/* A child that is killed leaves nothing behind. */
	tcp_pair(AF_INET, p);
	pid = must(fork());
	if (!pid) {
		close(p[0]);
		for (;;)
			pause();
	}
	close(p[1]);
	sleep_ms(100);	/* not in the middle of its close() */
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &status, 0));
	T(read(p[0], b, 1));
	return 0;
}
