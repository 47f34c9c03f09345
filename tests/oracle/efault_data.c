// SPDX-License-Identifier: GPL-2.0
/* EFAULT for the data of every sending and receiving call, in eight kinds of bad memory. */
#include "bad_memory.h"

static int tcp[2], udp[2];
static char buf[4096];

static void drain(void)
{
	for (int i = 0; i < 2; i++) {
		while (recv(tcp[i], buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
		while (recv(udp[i], buf, sizeof(buf), MSG_DONTWAIT) > 0)
			;
	}
}

static void prepare(void)
{
	drain();
	must(write(tcp[1], "0123456789abcdef", 16));
	must(send(udp[1], "0123456789abcdef", 16, 0));
	need(wait_for(tcp[0], POLLIN) && wait_for(udp[0], POLLIN));
}

static void outcome(long result)
{
	if (result < 0)
		printf(" %s", ename(errno));
	else
		printf(" ok:%ld", result);
}

#define SENDING(expr) do { outcome(expr); drain(); } while (0)
#define RECEIVING(expr) do { prepare(); outcome(expr); } while (0)

int main(void)
{
	bad_init();
	tcp_pair(AF_INET, tcp);
	udp_pair(AF_INET, udp);
	for (int k = 0; k < BAD_COUNT; k++) {
		void *p = bad_pointer(k, 16);
		struct iovec iov = { p, 16 }, two[2] = { { "good", 4 }, { p, 16 } };
		struct iovec tail[2] = { { buf, 4 }, { p, 16 } };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
		struct mmsghdr mm = { .msg_hdr = m };

		printf("%s tcp out:", bad_names[k]);
		SENDING(write(tcp[0], p, 16));
		SENDING(send(tcp[0], p, 16, 0));
		SENDING(sendto(tcp[0], p, 16, 0, NULL, 0));
		SENDING(writev(tcp[0], &iov, 1));
		SENDING(writev(tcp[0], two, 2));
		SENDING(sendmsg(tcp[0], &m, 0));
		SENDING(sendmmsg(tcp[0], &mm, 1, 0));
		SENDING(send(tcp[0], p, 0, 0));
		SENDING(send(tcp[0], p, 16, MSG_DONTWAIT | MSG_MORE));
		printf("\n%s udp out:", bad_names[k]);
		SENDING(write(udp[0], p, 16));
		SENDING(send(udp[0], p, 16, 0));
		SENDING(writev(udp[0], two, 2));
		SENDING(sendmsg(udp[0], &m, 0));
		SENDING(sendmmsg(udp[0], &mm, 1, 0));
		printf("\n%s tcp in:", bad_names[k]);
		RECEIVING(read(tcp[0], p, 16));
		RECEIVING(recv(tcp[0], p, 16, 0));
		RECEIVING(recv(tcp[0], p, 16, MSG_PEEK));
		RECEIVING(recv(tcp[0], p, 16, MSG_WAITALL));
		RECEIVING(readv(tcp[0], &iov, 1));
		RECEIVING(readv(tcp[0], tail, 2));
		RECEIVING(recvmsg(tcp[0], &m, 0));
		RECEIVING(recvmmsg(tcp[0], &mm, 1, 0, NULL));
		printf("\n%s udp in:", bad_names[k]);
		RECEIVING(read(udp[0], p, 16));
		RECEIVING(recv(udp[0], p, 16, 0));
		RECEIVING(recv(udp[0], p, 16, MSG_PEEK));
		RECEIVING(readv(udp[0], tail, 2));
		RECEIVING(recvmsg(udp[0], &m, 0));
		RECEIVING(recvmmsg(udp[0], &mm, 1, 0, NULL));
		/* A datagram that could not be copied: gone or not? */
		printf(" left:%zd\n", recv(udp[0], buf, 16, MSG_DONTWAIT));
	}
	return 0;
}
