// SPDX-License-Identifier: GPL-2.0
/*
 * Which combinations of family, type and protocol make a socket, and the errors of the rest.
 * SOCK_SEQPACKET of INET is left out: it is SCTP, which not every kernel has.
 */
#include "oracle.h"

struct named {
	int value;
	const char *name;
};

static const struct named families[] = {
	{ AF_INET, "INET" }, { AF_INET6, "INET6" }, { AF_NETLINK, "NETLINK" },
	{ AF_PACKET, "PACKET" }, { AF_UNIX, "UNIX" }, { AF_UNSPEC, "UNSPEC" },
	{ 99, "99" }, { -1, "-1" }, { AF_MAX, "AF_MAX" },
};

static const struct named types[] = {
	{ SOCK_STREAM, "STREAM" }, { SOCK_DGRAM, "DGRAM" }, { SOCK_RAW, "RAW" },
	{ SOCK_SEQPACKET, "SEQPACKET" }, { SOCK_RDM, "RDM" }, { SOCK_PACKET, "PACKET" },
	{ 0, "0" }, { 11, "11" }, { -1, "-1" }, { SOCK_STREAM | 0x100, "STREAM|0x100" },
};

static const int protocols[] = {
	0, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6,
	IPPROTO_UDPLITE, IPPROTO_RAW, 255, 256, 300, -1,
};

int main(void)
{
	for (size_t f = 0; f < ARRAY_SIZE(families); f++) {
		for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
			if (types[t].value == SOCK_SEQPACKET &&
			    (families[f].value == AF_INET || families[f].value == AF_INET6))
				continue;
			printf("%s %s:", families[f].name, types[t].name);
			for (size_t p = 0; p < ARRAY_SIZE(protocols); p++) {
				int fd = socket(families[f].value, types[t].value, protocols[p]);

				printf(" %d=%s", protocols[p], fd < 0 ? ename(errno) : "ok");
				if (fd >= 0)
					close(fd);
			}
			printf("\n");
		}
	}
	return 0;
}
