// SPDX-License-Identifier: GPL-2.0
/* Messages that are never received: the descriptors in them are closed when they are dropped. */
#include "scm.h"

static int ux[2], tcp[2];

/* A connection in a message, and nowhere else. */
static void fresh(int type)
{
	must(socketpair(AF_UNIX, type, 0, ux));
	tcp_pair(AF_INET, tcp);
	must(pass(ux[0], tcp, 1, 0));
	close(tcp[0]);
	say("on its way: %s", polled(tcp[1]));
}

int main(void)
{
	int inner[2], fd, status, i;
	struct parcel p;
	pid_t pid;

	fresh(SOCK_STREAM);
	close(ux[1]);
	say("receiver closed: %s", end_of(tcp[1]));
	close(ux[0]);
	fresh(SOCK_DGRAM);
	close(ux[0]);
	say("sender closed: %s", polled(tcp[1]));
	fd = take_one(ux[1], 0);
	T(write(fd, "x", 1));
	close(fd);
	close(ux[1]);

	/* In a message in a message. */
	fresh(SOCK_SEQPACKET);
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, inner));
	must(pass_one(inner[0], ux[1]));
	close(ux[0]);
	close(ux[1]);
	say("receiver itself on its way: %s", polled(tcp[1]));
	close(inner[0]);
	close(inner[1]);
	say("dropped: %s", end_of(tcp[1]));

	/* A receiver that is killed. */
	fresh(SOCK_STREAM);
	pid = must(fork());
	if (!pid) {
		pause();
		_exit(0);
	}
	close(ux[0]);
	close(ux[1]);
	close(tcp[1]);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, &status, 0));

	/* Messages that could not be sent keep nothing. */
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ux));
	tcp_pair(AF_INET, tcp);
	for (i = 0; pass(ux[0], tcp, 1, MSG_DONTWAIT) == 1; i++)
		;
	say("some went %d, then %s", i > 0, ename(errno));
	while (take_one(ux[1], MSG_DONTWAIT | MSG_PEEK) >= 0 && i-- > 0)
		close(take_one(ux[1], MSG_DONTWAIT));
	close(ux[1]);
	T(pass_one(ux[0], tcp[0]));
	T(sendmsg(ux[0], packed(&p, 1, (int[]){ tcp[0], 9999 }, 2), 0));
	T(sendmsg(-1, packed(&p, 1, tcp, 1), 0));
	T(sendmsg(tcp[0], packed(&p, 1, tcp, 1), 0));
	for (fd = 3; fd < 1000; fd++)
		if (fd != tcp[1])
			close(fd);
	while (!strcmp(end_of(tcp[1]), "data"))
		;
	say("%s", end_of(tcp[1]));
	return 0;
}
