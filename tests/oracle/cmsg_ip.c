// SPDX-License-Identifier: GPL-2.0
/* Ancillary data of IPv4: PKTINFO, TTL, TOS, options, ORIGDSTADDR, received and sent. */
#include "cmsg.h"

static void send_with(int fd, int level, int type, const void *value, size_t len)
{
	struct message m;
	size_t used = 0;

	fresh(&m);
	m.header.msg_name = NULL;
	m.header.msg_namelen = 0;
	m.iov.iov_len = 3;
	add_cmsg(&m, &used, level, type, value, len);
	T(sendmsg(fd, &m.header, 0));
}

int main(void)
{
	struct in_pktinfo info;
	int u[2], value;
	unsigned char byte;

	udp_pair(AF_INET, u);
	must(set_int(u[1], IPPROTO_IP, IP_PKTINFO, 1));
	must(set_int(u[1], IPPROTO_IP, IP_RECVTTL, 1));
	must(set_int(u[1], IPPROTO_IP, IP_RECVTOS, 1));
	must(set_int(u[1], IPPROTO_IP, IP_RECVORIGDSTADDR, 1));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);
	must(set_int(u[0], IPPROTO_IP, IP_TTL, 17));
	must(set_int(u[0], IPPROTO_IP, IP_TOS, 0x2e << 2));
	must(send(u[0], "abc", 3, 0));
	receive(u[1], 0);

	value = 99;
	send_with(u[0], IPPROTO_IP, IP_TTL, &value, 4);
	receive(u[1], MSG_DONTWAIT);
	value = 0x10;
	send_with(u[0], IPPROTO_IP, IP_TOS, &value, 4);
	receive(u[1], MSG_DONTWAIT);
	byte = 0x20;
	send_with(u[0], IPPROTO_IP, IP_TOS, &byte, 1);
	receive(u[1], MSG_DONTWAIT);
	value = 0;
	send_with(u[0], IPPROTO_IP, IP_TTL, &value, 4);
	value = 256;
	send_with(u[0], IPPROTO_IP, IP_TTL, &value, 4);
	send_with(u[0], IPPROTO_IP, IP_TTL, &byte, 1);
	memset(&info, 0, sizeof(info));
	info.ipi_ifindex = 1;
	send_with(u[0], IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	receive(u[1], MSG_DONTWAIT);
	info.ipi_ifindex = 77;
	send_with(u[0], IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	send_with(u[0], IPPROTO_IP, 999, &value, 4);
	send_with(u[0], 999, 1, &value, 4);
	receive(u[1], MSG_DONTWAIT);

	/* From an address of one's choice. */
	close(u[0]);
	u[0] = must(socket(AF_INET, SOCK_DGRAM, 0));
	memset(&info, 0, sizeof(info));
	inet_pton(AF_INET, "127.0.0.9", &info.ipi_spec_dst);
	{
		struct message m;
		size_t used = 0;
		union address to = loopback(AF_INET, local_port(u[1]));

		must(connect(u[1], &(struct sockaddr){ .sa_family = AF_UNSPEC }, 16));
		to = loopback(AF_INET, local_port(u[1]));
		fresh(&m);
		m.from = to;
		m.header.msg_namelen = sizeof(to.in);
		m.iov.iov_len = 3;
		add_cmsg(&m, &used, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
		T(sendmsg(u[0], &m.header, 0));
		receive(u[1], MSG_DONTWAIT);
		inet_pton(AF_INET, "10.9.9.9", &info.ipi_spec_dst);
		used = 0;
		add_cmsg(&m, &used, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
		T(sendmsg(u[0], &m.header, 0));
	}
	return 0;
}
