// SPDX-License-Identifier: GPL-2.0
/* Malformed control messages on the way in; too small a buffer on the way out. */
#include "cmsg.h"

int main(void)
{
	int u[2], value = 5;
	struct message m;
	struct cmsghdr *c = (struct cmsghdr *)m.control;
	size_t used = 0;

	udp_pair(AF_INET, u);
	fresh(&m);
	m.header.msg_name = NULL;
	m.header.msg_namelen = 0;
	m.iov.iov_len = 3;
	add_cmsg(&m, &used, IPPROTO_IP, IP_TTL, &value, 4);
	c->cmsg_len = 0;
	T(sendmsg(u[0], &m.header, 0));
	c->cmsg_len = 3;
	T(sendmsg(u[0], &m.header, 0));
	c->cmsg_len = 1000;
	T(sendmsg(u[0], &m.header, 0));
	c->cmsg_len = -1;
	T(sendmsg(u[0], &m.header, 0));
	c->cmsg_len = CMSG_LEN(4);
	m.header.msg_controllen = 8;	/* less than a header: none at all */
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_controllen = 1 << 20;
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_controllen = -1;
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_controllen = used;
	m.header.msg_control = NULL;
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_control = m.control;
	m.header.msg_iovlen = 1025;
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_iovlen = 1;
	m.header.msg_namelen = -1;
	m.header.msg_name = &m.from;
	T(sendmsg(u[0], &m.header, 0));
	m.header.msg_namelen = 1000;
	m.from = loopback(AF_INET, local_port(u[1]));
	T(sendmsg(u[0], &m.header, 0));
	while (recv(u[1], m.data, 100, MSG_DONTWAIT) >= 0)
		;

	/* SCM_RIGHTS and credentials mean nothing to INET. */
	fresh(&m);
	m.header.msg_name = NULL;
	m.header.msg_namelen = 0;
	m.iov.iov_len = 3;
	used = 0;
	add_cmsg(&m, &used, SOL_SOCKET, SCM_RIGHTS, &u[0], 4);
	T(sendmsg(u[0], &m.header, 0));

	must(set_int(u[1], IPPROTO_IP, IP_RECVTTL, 1));
	must(set_int(u[1], IPPROTO_IP, IP_PKTINFO, 1));
	for (size_t size = 0; size <= 64; size += 4) {
		while (recv(u[1], m.data, 100, MSG_DONTWAIT) >= 0)
			;
		must(send(u[0], "abc", 3, 0));
		fresh(&m);
		m.header.msg_controllen = size;
		must(recvmsg(u[1], &m.header, 0));
		say("room %zu: used %zu flags %s", size, m.header.msg_controllen, msg_flags(m.header.msg_flags));
	}
	return 0;
}
