// SPDX-License-Identifier: GPL-2.0
/* Each look at a message by MSG_PEEK makes descriptors, and so does receiving it. */
#include "scm.h"

int main(void)
{
	int ux[2], tcp[2], first, second, third;
	char b[16] = "";

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ux));
	tcp_pair(AF_INET, tcp);
	T(pass_one(ux[0], tcp[0]));
	close(tcp[0]);
	first = take_one(ux[1], MSG_PEEK);
	second = take_one(ux[1], MSG_PEEK | MSG_CMSG_CLOEXEC);
	third = take_one(ux[1], 0);
	say("three numbers %d, cloexec %d %d %d", first >= 0 && second > first && third > second,
	    fcntl(first, F_GETFD), fcntl(second, F_GETFD), fcntl(third, F_GETFD));
	say("%s, %s, %s", kind(first), kind(second), kind(third));
	T(take_one(ux[1], MSG_DONTWAIT));
	T(send(first, "1", 1, 0));
	close(first);
	T(send(second, "2", 1, 0));
	nonblocking(second);
	say("one file: %d", !!(fcntl(third, F_GETFL) & O_NONBLOCK));
	close(second);
	T(send(third, "3", 1, 0));
	T(recv(tcp[1], b, 3, MSG_WAITALL));
	say("%s, then %s", b, polled(tcp[1]));
	close(third);
	say("%s", end_of(tcp[1]));

	/* Looked at, but never received. */
	tcp_pair(AF_INET, tcp);
	T(pass_one(ux[0], tcp[0]));
	close(tcp[0]);
	first = take_one(ux[1], MSG_PEEK);
	close(ux[0]);
	close(ux[1]);
	T(send(first, "still", 5, 0));
	T(recv(tcp[1], b, 5, MSG_WAITALL));
	close(first);
	say("%s", end_of(tcp[1]));
	return 0;
}
