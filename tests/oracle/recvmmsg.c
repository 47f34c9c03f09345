// SPDX-License-Identifier: GPL-2.0
/* recvmmsg() and sendmmsg(): counts, lengths, partial success, time-out, flags. */
#include "oracle.h"

#define COUNT 8

/* Of a thousand messages with names that nobody can read the first one ends the call. */
static void unread_names(void)
{
	static struct mmsghdr bad[1024];
	struct timespec from, to;
	int pair[2], i;

	for (i = 0; i < 1024; i++)
		bad[i].msg_hdr = (struct msghdr){ .msg_name = (void *)8, .msg_namelen = 16 };
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair));
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < 2000 && sendmmsg(pair[0], bad, 1024, 0) < 0 && errno == EFAULT; i++)
		;
	clock_gettime(CLOCK_MONOTONIC, &to);
	printf("%d, %s\n", i, to.tv_sec - from.tv_sec < 3 ? "at once" : "late");
}

int main(void)
{
	static char data[COUNT][32];
	struct iovec iov[COUNT];
	struct mmsghdr mm[COUNT];
	struct timespec ts = { 0, 100000000 };
	int u[2], p[2];

	memset(mm, 0, sizeof(mm));
	for (int i = 0; i < COUNT; i++) {
		iov[i] = (struct iovec){ data[i], i + 1 };
		mm[i].msg_hdr.msg_iov = &iov[i];
		mm[i].msg_hdr.msg_iovlen = 1;
		memset(data[i], 'a' + i, 32);
	}
	udp_pair(AF_INET, u);
	T(sendmmsg(u[0], mm, COUNT, 0));
	for (int i = 0; i < COUNT; i++)
		printf("%u ", mm[i].msg_len);
	printf("\n");
	for (int i = 0; i < COUNT; i++)
		iov[i].iov_len = 5;
	T(recvmmsg(u[1], mm, 3, 0, NULL));
	for (int i = 0; i < 3; i++)
		printf("%u:%c:%s ", mm[i].msg_len, data[i][0], mm[i].msg_hdr.msg_flags & MSG_TRUNC ? "T" : "-");
	printf("\n");
	T(recvmmsg(u[1], mm, COUNT, MSG_DONTWAIT, NULL));
	for (int i = 0; i < 5; i++)
		printf("%u:%c:%s ", mm[i].msg_len, data[i][0], mm[i].msg_hdr.msg_flags & MSG_TRUNC ? "T" : "-");
	printf("\n");
	T(recvmmsg(u[1], mm, COUNT, MSG_DONTWAIT, NULL));
	must(send(u[0], "one", 3, 0));
	T(recvmmsg(u[1], mm, COUNT, MSG_WAITFORONE, NULL));
	must(send(u[0], "one", 3, 0));
	T(recvmmsg(u[1], mm, 1, 0, &ts));
	T(recvmmsg(u[1], mm, 0, 0, NULL));
	T(sendmmsg(u[0], mm, 0, 0));
	T(recvmmsg(u[1], mm, COUNT, 0, &(struct timespec){ 0, 2000000000 }));
	T(recvmmsg(u[1], NULL, 1, MSG_DONTWAIT, NULL));

	/* The second one fails: the first is reported, the error comes later or never. */
	for (int i = 0; i < COUNT; i++)
		iov[i].iov_len = 4;
	iov[1].iov_base = (void *)8;
	T(sendmmsg(u[0], mm, 3, 0));
	T(sendmmsg(u[0], mm + 1, 2, 0));
	iov[1].iov_base = data[1];
	T(recvmmsg(u[1], mm, COUNT, MSG_DONTWAIT, NULL));

	tcp_pair(AF_INET, p);
	T(sendmmsg(p[0], mm, 3, 0));
	T(recvmmsg(p[1], mm, COUNT, MSG_DONTWAIT, NULL));
	T(recvmmsg(-1, mm, 1, 0, NULL));
	T(recvmmsg(0, mm, 1, 0, NULL));
	T(sendmmsg(0, mm, 1, 0));
	unread_names();
	return 0;
}
