// SPDX-License-Identifier: GPL-2.0
/* Integer options of IPPROTO_IPV6: default, set, read back. */
#include "oracle.h"

#define IPV6_FLOWINFO 11
#define IPV6_FLOWINFO_SEND 33
#define IPV6_RECVERR_RFC4884 31

#define O(name) { name, #name }
static const struct {
	int name;
	const char *text;
} options[] = {
	O(IPV6_UNICAST_HOPS), O(IPV6_MULTICAST_IF), O(IPV6_MULTICAST_HOPS),
	O(IPV6_MULTICAST_LOOP), O(IPV6_V6ONLY), O(IPV6_RECVPKTINFO), O(IPV6_RECVHOPLIMIT),
	O(IPV6_RECVHOPOPTS), O(IPV6_RECVRTHDR), O(IPV6_RECVDSTOPTS), O(IPV6_RECVTCLASS),
	O(IPV6_TCLASS), O(IPV6_MTU_DISCOVER), O(IPV6_MTU), O(IPV6_RECVERR), O(IPV6_DONTFRAG),
	O(IPV6_RECVPATHMTU), O(IPV6_AUTOFLOWLABEL), O(IPV6_FLOWINFO_SEND), O(IPV6_FLOWINFO),
	O(IPV6_ADDR_PREFERENCES), O(IPV6_MINHOPCOUNT), O(IPV6_ORIGDSTADDR), O(IPV6_TRANSPARENT),
	O(IPV6_UNICAST_IF), O(IPV6_RECVFRAGSIZE), O(IPV6_FREEBIND), O(IPV6_ROUTER_ALERT),
	O(IPV6_MULTICAST_ALL), O(IPV6_CHECKSUM), O(IPV6_2292PKTINFO), O(IPV6_HDRINCL),
	O(IPV6_RECVERR_RFC4884),
};

static void show(int fd, size_t i)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, IPPROTO_IPV6, options[i].name, &value, &len))
		printf(" get %s", ename(errno));
	else
		printf(" %d (len %d)", value, len);
}

int main(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };
	static const int values[] = { 1, 0, 64, 255, 256, -1, 1280 };

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		say("type %d", types[t]);
		for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
			int fd = must(socket(AF_INET6, types[t], types[t] == SOCK_RAW ? 253 : 0));

			printf("%s:", options[i].text);
			show(fd, i);
			for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
				printf("; %d", values[v]);
				if (set_int(fd, IPPROTO_IPV6, options[i].name, values[v]))
					printf(" %s", ename(errno));
				else
					show(fd, i);
			}
			printf("\n");
			close(fd);
		}
	}
	return 0;
}
