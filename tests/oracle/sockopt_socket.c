// SPDX-License-Identifier: GPL-2.0
/*
 * Integer options of SOL_SOCKET: default, set, read back, on TCP, UDP and raw
 * sockets. Left out are those whose answers changed between releases: SO_PASS*
 * on INET sockets (refused since 6.16), SO_TXREHASH on UDP. What needs privileges
 * is in sockopt_privileged.c.
 */
#include "oracle.h"
#include <linux/sockios.h>
#include <asm/socket.h>

#define O(name) { name, #name }
static const struct {
	int name;
	const char *text;
} options[] = {
	O(SO_REUSEADDR), O(SO_TYPE), O(SO_ERROR), O(SO_DONTROUTE),
	O(SO_BROADCAST), O(SO_KEEPALIVE), O(SO_OOBINLINE), O(SO_NO_CHECK),
	O(SO_PRIORITY), O(SO_BSDCOMPAT), O(SO_REUSEPORT), O(SO_RCVLOWAT),
	O(SO_SNDLOWAT), O(SO_TIMESTAMP), O(SO_ACCEPTCONN), O(SO_MARK),
	O(SO_PROTOCOL), O(SO_DOMAIN), O(SO_RXQ_OVFL), O(SO_PEEK_OFF), O(SO_NOFCS),
	O(SO_LOCK_FILTER), O(SO_SELECT_ERR_QUEUE), 
	O(SO_TIMESTAMPNS), O(SO_ZEROCOPY), O(SO_TIMESTAMPING), 
	O(SO_RESERVE_MEM), O(SO_BUF_LOCK), O(SO_RCVMARK),
	O(SO_WIFI_STATUS), O(SO_INCOMING_CPU), O(SO_NETNS_COOKIE),
};

static void show(int fd, size_t i)
{
	unsigned char raw[64];
	socklen_t len = sizeof(raw);
	int value;

	memset(raw, 0, sizeof(raw));
	if (getsockopt(fd, SOL_SOCKET, options[i].name, raw, &len)) {
		printf(" get %s", ename(errno));
		return;
	}
	memcpy(&value, raw, 4);
	/* The values of these two depend on the machine. */
	if (options[i].name == SO_INCOMING_CPU || options[i].name == SO_NETNS_COOKIE)
		printf(" (len %d)", len);
	else if (options[i].name == SO_RCVLOWAT && value > 1000)
		printf(" cut to the buffer's limit (len %d)", len);
	else
		printf(" %d (len %d)", value, len);
}

int main(void)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW };
	static const int values[] = { 1, 0, 6, 1000, -1 };

	for (size_t t = 0; t < ARRAY_SIZE(types); t++) {
		int fd = must(socket(AF_INET, types[t], types[t] == SOCK_RAW ? IPPROTO_ICMP : 0));

		say("type %d", types[t]);
		for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
			printf("%s:", options[i].text);
			show(fd, i);
			for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
				printf("; %d", values[v]);
				if (set_int(fd, SOL_SOCKET, options[i].name, values[v]))
					printf(" %s", ename(errno));
				else
					show(fd, i);
			}
			/* SO_LOCK_FILTER can't be taken back; nothing after it minds. */
			printf("\n");
			set_int(fd, SOL_SOCKET, options[i].name, 0);
		}
	}
	return 0;
}
