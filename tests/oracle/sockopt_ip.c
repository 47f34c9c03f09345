// SPDX-License-Identifier: GPL-2.0
/* Integer options of IPPROTO_IP: default, set, read back. */
#include "oracle.h"

#ifndef IP_RECVERR_RFC4884
#define IP_RECVERR_RFC4884 26
#endif
#ifndef IP_LOCAL_PORT_RANGE
#define IP_LOCAL_PORT_RANGE 51
#endif

#define O(name) { name, #name }
static const struct {
	int name;
	const char *text;
} options[] = {
	O(IP_TOS), O(IP_TTL), O(IP_HDRINCL), O(IP_ROUTER_ALERT), O(IP_RECVOPTS),
	O(IP_RETOPTS), O(IP_PKTINFO), O(IP_MTU_DISCOVER), O(IP_RECVERR), O(IP_RECVTTL),
	O(IP_RECVTOS), O(IP_MTU), O(IP_FREEBIND), O(IP_PASSSEC), O(IP_TRANSPARENT),
	O(IP_MINTTL), O(IP_NODEFRAG), O(IP_CHECKSUM), O(IP_BIND_ADDRESS_NO_PORT),
	O(IP_RECVFRAGSIZE), O(IP_RECVERR_RFC4884), O(IP_MULTICAST_TTL), O(IP_MULTICAST_LOOP),
	O(IP_MULTICAST_ALL), O(IP_UNICAST_IF), O(IP_LOCAL_PORT_RANGE), O(IP_RECVORIGDSTADDR),
};

static void show(int fd, size_t i)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, IPPROTO_IP, options[i].name, &value, &len))
		printf(" get %s", ename(errno));
	else
		printf(" %d (len %d)", value, len);
}

int main(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };
	static const int values[] = { 1, 0, 64, 255, 256, -1 };

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		say("type %d", types[t]);
		for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
			int fd = must(socket(AF_INET, types[t], types[t] == SOCK_RAW ? 253 : 0));

			printf("%s:", options[i].text);
			show(fd, i);
			for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
				printf("; %d", values[v]);
				if (set_int(fd, IPPROTO_IP, options[i].name, values[v]))
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
