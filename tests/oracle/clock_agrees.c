// SPDX-License-Identifier: GPL-2.0
/* Stamps on packets are made by the same clock that the program reads. */
#include "oracle.h"

int main(void)
{
	int u[2], within = 0;
	char b[8], control[64];
	struct iovec iov = { b, 8 };

	udp_pair(AF_INET, u);
	must(set_int(u[1], SOL_SOCKET, SO_TIMESTAMPNS, 1));
	sleep_ms(100);	/* stamping is switched on in the background */
	for (int i = 0; i < 100; i++) {
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof(control) };
		struct timespec before, stamp = { 0 }, after;

		clock_gettime(CLOCK_REALTIME, &before);
		must(send(u[0], "x", 1, 0));
		must(recvmsg(u[1], &m, 0));
		clock_gettime(CLOCK_REALTIME, &after);
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_TIMESTAMPNS)
				memcpy(&stamp, CMSG_DATA(c), sizeof(stamp));
		/* To the microsecond: the two are read in different ways. */
		int64_t at = stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
		int64_t from = before.tv_sec * 1000000000LL + before.tv_nsec - 1000;
		int64_t to = after.tv_sec * 1000000000LL + after.tv_nsec + 1000;

		within += at >= from && at <= to;
		if (i % 10 == 0)
			sleep_ms(2);
	}
	say("stamps between the clock before and after: %d of 100", within);
	return 0;
}
