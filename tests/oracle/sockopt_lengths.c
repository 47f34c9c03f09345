// SPDX-License-Identifier: GPL-2.0
/* Options with lengths they do not expect, set and get. */
#include "oracle.h"

#define O(level, name) { level, name, #name }
static const struct {
	int level, name;
	const char *text;
} options[] = {
	O(SOL_SOCKET, SO_REUSEADDR), O(SOL_SOCKET, SO_RCVBUF), O(SOL_SOCKET, SO_LINGER),
	O(SOL_SOCKET, SO_RCVTIMEO), O(SOL_SOCKET, SO_TYPE), O(SOL_SOCKET, SO_BINDTODEVICE),
	O(SOL_SOCKET, SO_ATTACH_FILTER), O(SOL_SOCKET, SO_MAX_PACING_RATE),
	O(SOL_SOCKET, SO_PEERCRED), O(SOL_SOCKET, SO_PEERNAME), O(SOL_SOCKET, SO_MEMINFO),
	O(IPPROTO_IP, IP_TTL), O(IPPROTO_IP, IP_TOS), O(IPPROTO_IP, IP_OPTIONS),
	O(IPPROTO_IP, IP_MULTICAST_IF), O(IPPROTO_IP, IP_ADD_MEMBERSHIP),
	O(IPPROTO_IP, IP_MTU_DISCOVER), O(IPPROTO_IP, IP_MSFILTER),
	O(IPPROTO_TCP, TCP_NODELAY), O(IPPROTO_TCP, TCP_CONGESTION), O(IPPROTO_TCP, TCP_MAXSEG),
	O(IPPROTO_TCP, TCP_INFO), O(IPPROTO_TCP, TCP_MD5SIG),
};

int main(void)
{
	static const int lengths[] = { 0, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 300, -1, INT32_MIN };
	static unsigned char value[512];

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		printf("%s set", options[i].text);
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
			int fd = must(socket(AF_INET, SOCK_STREAM, 0));

			memset(value, 0, sizeof(value));
			value[0] = 1;
			printf(" %d:%s", lengths[l], setsockopt(fd, options[i].level, options[i].name,
			       value, lengths[l]) ? ename(errno) : "ok");
			close(fd);
		}
		printf("\n%s get", options[i].text);
		for (size_t l = 0; l < ARRAY_SIZE(lengths); l++) {
			int fd = must(socket(AF_INET, SOCK_STREAM, 0));
			socklen_t len = lengths[l];

			memset(value, 0xee, sizeof(value));
			if (getsockopt(fd, options[i].level, options[i].name, value, &len))
				printf(" %d:%s", lengths[l], ename(errno));
			else if (options[i].name == TCP_INFO && lengths[l] > 104)
				printf(" %d:ok", lengths[l]);	/* grows with each release */
			else
				printf(" %d:%d", lengths[l], (int)len);
			close(fd);
		}
		printf("\n");
	}
	return 0;
}
