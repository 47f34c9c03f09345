// SPDX-License-Identifier: GPL-2.0
/* A listener's saved SYN, TCP_REPAIR, TCP_QUEUE_SEQ, TCP_INQ: what tools use. */
#include "oracle.h"

int main(void)
{
	int l = listener(AF_INET, 4), c, s, p[2], seq = 0;
	unsigned char syn[200];
	socklen_t len = sizeof(syn);
	char b[8], control[64];
	struct iovec iov = { b, 2 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 64 };

	T(set_int(l, IPPROTO_TCP, TCP_SAVE_SYN, 1));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect_port(c, AF_INET, local_port(l)));
	s = must(accept(l, NULL, NULL));
	T(getsockopt(s, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len));
	say("version %d, SYN set %d, length plausible %d", syn[0] >> 4, !!(syn[20 + 13] & 2), len >= 40);
	len = sizeof(syn);
	T(getsockopt(s, IPPROTO_TCP, TCP_SAVED_SYN, syn, &len));
	N(len);

	tcp_pair(AF_INET, p);
	T(set_int(p[1], IPPROTO_TCP, 36 /* TCP_INQ */, 1));
	must(write(p[0], "abcdef", 6));
	need(wait_for(p[1], POLLIN));
	T(recvmsg(p[1], &m, 0));
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h))
		say("level %d type %d value %d", h->cmsg_level, h->cmsg_type, *(int *)CMSG_DATA(h));

	T(set_int(p[0], IPPROTO_TCP, TCP_REPAIR, 1));
	N(int_option(p[0], IPPROTO_TCP, TCP_REPAIR));
	T(set_int(p[0], IPPROTO_TCP, TCP_REPAIR_QUEUE, TCP_SEND_QUEUE));
	seq = int_option(p[0], IPPROTO_TCP, TCP_QUEUE_SEQ);
	say("a sequence number %d", seq != 0);
	T(set_int(p[0], IPPROTO_TCP, TCP_REPAIR, 0));
	T(write(p[0], "x", 1));
	return 0;
}
