// SPDX-License-Identifier: GPL-2.0
/* UDP's own options: cork, segment, GRO, encapsulation, checksums. */
#include "oracle.h"

int main(void)
{
	int p[2], s = must(socket(AF_INET, SOCK_STREAM, 0));
	char b[4096];
	static char big[3000];
	char control[64];
	struct iovec iov = { b, sizeof(b) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };

	udp_pair(AF_INET, p);
	T(set_int(p[0], IPPROTO_UDP, UDP_CORK, 1));
	N(int_option(p[0], IPPROTO_UDP, UDP_CORK));
	T(send(p[0], "ab", 2, 0));
	T(send(p[0], "cd", 2, 0));
	T(recv(p[1], b, sizeof(b), MSG_DONTWAIT));
	T(set_int(p[0], IPPROTO_UDP, UDP_CORK, 0));
	T(recv(p[1], b, sizeof(b), 0));
	say("%.4s", b);
	T(send(p[0], "ef", 2, MSG_MORE));
	T(recv(p[1], b, sizeof(b), MSG_DONTWAIT));
	T(send(p[0], "gh", 2, 0));
	T(recv(p[1], b, sizeof(b), 0));
	say("%.4s", b);

	N(int_option(p[0], IPPROTO_UDP, UDP_SEGMENT));
	T(set_int(p[0], IPPROTO_UDP, UDP_SEGMENT, 1000));
	T(set_int(p[0], IPPROTO_UDP, UDP_SEGMENT, 70000));
	T(set_int(p[0], IPPROTO_UDP, UDP_SEGMENT, -1));
	N(int_option(p[0], IPPROTO_UDP, UDP_SEGMENT));
	T(send(p[0], big, 2500, 0));
	T(recv(p[1], b, sizeof(b), 0));
	T(recv(p[1], b, sizeof(b), 0));
	T(recv(p[1], b, sizeof(b), 0));
	T(recv(p[1], b, sizeof(b), MSG_DONTWAIT));
	T(set_int(p[1], IPPROTO_UDP, UDP_GRO, 1));
	N(int_option(p[1], IPPROTO_UDP, UDP_GRO));
	T(send(p[0], big, 2500, 0));
	m.msg_controllen = sizeof(control);
	T(recvmsg(p[1], &m, 0));
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
		say("cmsg %d %d: %d", c->cmsg_level, c->cmsg_type, *(int *)CMSG_DATA(c));

	T(set_int(p[0], IPPROTO_UDP, UDP_ENCAP, 1));
	T(set_int(p[0], IPPROTO_UDP, UDP_ENCAP, 99));
	T(set_int(p[0], IPPROTO_UDP, 101 /* UDP_NO_CHECK6_TX */, 1));
	N(int_option(p[0], IPPROTO_UDP, 101));
	T(set_int(p[0], IPPROTO_UDP, 102 /* UDP_NO_CHECK6_RX */, 1));
	T(set_int(s, IPPROTO_UDP, UDP_CORK, 1));
	return 0;
}
