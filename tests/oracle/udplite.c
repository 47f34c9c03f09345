// SPDX-License-Identifier: GPL-2.0
/* UDP-Lite: partial checksum coverage. */
#include "oracle.h"

#ifndef UDPLITE_SEND_CSCOV
#define UDPLITE_SEND_CSCOV 10
#define UDPLITE_RECV_CSCOV 11
#endif

int main(void)
{
	int a = socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE), b;
	union address any = loopback(AF_INET, 0), to;
	char buf[16];

	if (a < 0)
		skip("UDP-Lite is not in this kernel");
	b = must(socket(AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE));
	must(bind(b, &any.sa, sizeof(any.in)));
	to = loopback(AF_INET, local_port(b));
	T(set_int(a, IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, 3));
	N(int_option(a, IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV));
	T(set_int(a, IPPROTO_UDPLITE, UDPLITE_SEND_CSCOV, 12));
	T(sendto(a, "partial", 7, 0, &to.sa, sizeof(to.in)));
	T(recv(b, buf, 16, MSG_DONTWAIT));
	T(set_int(b, IPPROTO_UDPLITE, UDPLITE_RECV_CSCOV, 14));
	T(sendto(a, "partial", 7, 0, &to.sa, sizeof(to.in)));
	T(recv(b, buf, 16, MSG_DONTWAIT));
	return 0;
}
