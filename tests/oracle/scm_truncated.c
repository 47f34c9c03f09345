// SPDX-License-Identifier: GPL-2.0
/* Too little room for the descriptors of a message: those that do not fit are closed. */
#include "scm.h"

static int ux[2];

static void with_room(size_t room, int flags)
{
	int a[2], b[2], c[2];
	struct parcel got;
	int i;

	tcp_pair(AF_INET, a);
	tcp_pair(AF_INET, b);
	tcp_pair(AF_INET, c);
	must(pass(ux[0], (int[]){ a[0], b[0], c[0] }, 3, 0));
	close(a[0]);
	close(b[0]);
	close(c[0]);
	must(take(ux[1], &got, room, flags));
	say("room %zu, flags 0x%x: %d came, %s, %zu bytes of control", room, flags, got.count,
	    msg_flags(got.header.msg_flags & ~MSG_CMSG_CLOEXEC), (size_t)got.header.msg_controllen);
	for (i = 0; i < got.count; i++)
		must(write(got.fd[i], "x", 1));
	say("%s %s %s", got.count > 0 ? polled(a[1]) : end_of(a[1]),
	    got.count > 1 ? polled(b[1]) : end_of(b[1]), got.count > 2 ? polled(c[1]) : end_of(c[1]));
	for (i = 0; i < got.count; i++)
		close(got.fd[i]);
	close(a[1]);
	close(b[1]);
	close(c[1]);
}

int main(void)
{
	struct rlimit lim;
	int a[2], b[2], low;
	struct parcel got;
	char byte;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux));
	with_room(CMSG_LEN(12), 0);
	with_room(CMSG_LEN(8), 0);
	with_room(CMSG_LEN(4), MSG_CMSG_CLOEXEC);
	with_room(CMSG_LEN(4) + 3, 0);
	with_room(CMSG_LEN(0), 0);
	with_room(3, 0);
	with_room(0, 0);

	/* Received by a call that has no room at all. */
	tcp_pair(AF_INET, a);
	must(pass_one(ux[0], a[0]));
	close(a[0]);
	T(read(ux[1], &byte, 1));
	say("%s", end_of(a[1]));

	/* Room, but no number for the second. */
	tcp_pair(AF_INET, b);
	close(a[1]);
	must(pass(ux[0], (int[]){ b[0], b[0], b[0] }, 3, 0));
	close(b[0]);
	low = must(dup(0));
	must(getrlimit(RLIMIT_NOFILE, &lim));
	lim.rlim_cur = low + 1;
	must(setrlimit(RLIMIT_NOFILE, &lim));
	/* Sending takes no number at all. */
	T(pass(ux[1], (int[]){ b[1], b[1] }, 2, 0));
	close(low);
	T(take(ux[1], &got, sizeof(got.control), 0));
	say("%d came, %s", got.count, msg_flags(got.header.msg_flags));
	must(write(got.fd[0], "x", 1));
	say("%s", polled(b[1]));
	close(got.fd[0]);
	T(read(b[1], &byte, 1));
	say("%s", end_of(b[1]));
	T(take(ux[0], &got, CMSG_LEN(4), 0));
	say("%d came, %s", got.count, kind(got.fd[0]));
	return 0;
}
