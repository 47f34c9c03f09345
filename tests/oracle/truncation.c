// SPDX-License-Identifier: GPL-2.0
/* Datagrams too long for the buffer; MSG_TRUNC as a flag in and out; TCP's discard. */
#include "oracle.h"

int main(void)
{
	char b[8] = "", control[4];
	struct iovec iov = { b, 4 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int u[2], p[2];
	static char big[70000];

	udp_pair(AF_INET, u);
	for (int i = 0; i < 6; i++)
		must(send(u[0], "0123456789", 10, 0));
	T(recv(u[1], b, 4, 0));
	T(recv(u[1], b, 4, MSG_TRUNC));
	T(recvmsg(u[1], &m, 0));
	say("flags %s", msg_flags(m.msg_flags));
	T(recvmsg(u[1], &m, MSG_TRUNC));
	say("flags %s", msg_flags(m.msg_flags));
	iov.iov_len = 0;
	T(recvmsg(u[1], &m, 0));
	say("flags %s", msg_flags(m.msg_flags));
	must(set_int(u[1], IPPROTO_IP, IP_RECVTTL, 1));
	m.msg_control = control;
	m.msg_controllen = sizeof(control);
	T(recvmsg(u[1], &m, 0));
	say("flags %s controllen %zu", msg_flags(m.msg_flags), m.msg_controllen);

	T(send(u[0], big, 65507, 0));
	T(recv(u[1], big, sizeof(big), 0));
	T(send(u[0], big, 65508, 0));
	T(send(u[0], big, 70000, 0));
	T(recv(u[1], b, 4, MSG_DONTWAIT));

	tcp_pair(AF_INET, p);
	must(write(p[0], "0123456789", 10));
	need(wait_for(p[1], POLLIN));
	T(recv(p[1], NULL, 4, MSG_TRUNC));
	T(recv(p[1], b, 2, 0));
	say("%.2s", b);
	return 0;
}
