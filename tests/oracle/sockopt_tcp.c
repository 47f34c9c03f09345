// SPDX-License-Identifier: GPL-2.0
/*
 * Integer options of IPPROTO_TCP: default, set, read back, before and after
 * connecting. -1 is left out where releases differ (TCP_WINDOW_CLAMP, TCP_TX_DELAY).
 */
#include "oracle.h"

#ifndef TCP_TX_DELAY
#define TCP_TX_DELAY 37
#endif

#define O(name) { name, #name }
static const struct {
	int name;
	const char *text;
} options[] = {
	O(TCP_NODELAY), O(TCP_MAXSEG), O(TCP_CORK), O(TCP_KEEPIDLE), O(TCP_KEEPINTVL),
	O(TCP_KEEPCNT), O(TCP_SYNCNT), O(TCP_LINGER2), O(TCP_DEFER_ACCEPT),
	O(TCP_WINDOW_CLAMP), O(TCP_QUICKACK), O(TCP_THIN_LINEAR_TIMEOUTS), O(TCP_THIN_DUPACK),
	O(TCP_USER_TIMEOUT), O(TCP_REPAIR), O(TCP_REPAIR_QUEUE), O(TCP_QUEUE_SEQ),
	O(TCP_FASTOPEN), O(TCP_TIMESTAMP), O(TCP_NOTSENT_LOWAT),
	O(TCP_SAVE_SYN), O(TCP_FASTOPEN_CONNECT), O(TCP_FASTOPEN_NO_COOKIE), O(TCP_INQ),
	O(TCP_TX_DELAY), O(TCP_SAVED_SYN),
};

static void show(int fd, size_t i)
{
	int value = 0;
	socklen_t len = sizeof(value);

	if (getsockopt(fd, IPPROTO_TCP, options[i].name, &value, &len))
		printf(" get %s", ename(errno));
	else if (options[i].name == TCP_TIMESTAMP)
		printf(" (len %d)", len);	/* a clock */
	else
		printf(" %d (len %d)", value, len);
}

static void all(const char *title, int connected)
{
	static const int values[] = { 1, 0, 5, 100, 127, 128, 1000, 40000, -1 };

	say("%s", title);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int pair[2] = { -1, -1 }, fd;

		if (connected)
			tcp_pair(AF_INET, pair), fd = pair[0];
		else
			fd = must(socket(AF_INET, SOCK_STREAM, 0));
		printf("%s:", options[i].text);
		/* Of a connection's MSS and QUICKACK mode only success is certain. */
		if (!connected || (options[i].name != TCP_QUICKACK &&
				   options[i].name != TCP_WINDOW_CLAMP))
			show(fd, i);
		for (size_t v = 0; v < ARRAY_SIZE(values); v++) {
			if (values[v] < 0 && (options[i].name == TCP_WINDOW_CLAMP || options[i].name == TCP_TX_DELAY))
				continue;
			printf("; %d", values[v]);
			if (set_int(fd, IPPROTO_TCP, options[i].name, values[v]))
				printf(" %s", ename(errno));
			else if (!connected || options[i].name != TCP_QUICKACK)
				show(fd, i);
			if (options[i].name == TCP_REPAIR)
				break;
		}
		printf("\n");
		close(fd);
		close(pair[1]);
	}
}

int main(void)
{
	int u = must(socket(AF_INET, SOCK_DGRAM, 0));

	all("fresh", 0);
	all("connected", 1);
	T(set_int(u, IPPROTO_TCP, TCP_NODELAY, 1));
	N(int_option(u, IPPROTO_TCP, TCP_NODELAY));
	return 0;
}
