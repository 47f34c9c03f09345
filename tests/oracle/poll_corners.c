// SPDX-License-Identifier: GPL-2.0
/* poll() and ppoll(): odd arrays, odd descriptors, odd times. */
#include "oracle.h"

int main(void)
{
	int p[2], pipes[2], u = bound(AF_INET, SOCK_DGRAM);
	struct pollfd f[6];
	int n;

	tcp_pair(AF_INET, p);
	must(pipe(pipes));
	f[0] = (struct pollfd){ p[0], POLLIN | POLLOUT, 0x7777 };
	f[1] = (struct pollfd){ -1, POLLIN, 0x7777 };
	f[2] = (struct pollfd){ 9999, POLLIN, 0x7777 };
	f[3] = (struct pollfd){ pipes[1], POLLOUT, 0x7777 };
	f[4] = (struct pollfd){ pipes[0], POLLIN, 0x7777 };
	f[5] = (struct pollfd){ p[0], POLLIN, 0x7777 };
	n = T(poll(f, 6, 1000));
	for (int i = 0; i < 6; i++)
		say("%d: %s", i, events(f[i].revents));
	T(poll(f, 0, 0));
	T(poll(NULL, 1, 0));
	T(poll(f, (nfds_t)-1, 0));
	T(ppoll(f, 1, &(struct timespec){ 0, 1000000000 }, NULL));
	T(ppoll(f, 1, &(struct timespec){ -1, 0 }, NULL));
	T(ppoll(f, 1, (struct timespec *)8, NULL));
	close(p[1]);
	close(pipes[0]);
	sleep_ms(20);
	n = T(poll(f, 6, 1000));
	for (int i = 0; i < 6; i++)
		say("%d: %s", i, events(f[i].revents));
	f[0] = (struct pollfd){ p[0], 0, 0 };
	f[1] = (struct pollfd){ u, 0, 0 };
	T(poll(f, 2, 0));
	f[0].events = 0x7fff;
	n = poll(f, 1, 0);
	say("%d %s", n, events(f[0].revents));
	/* Regular files and the like are always ready. */
	f[0] = (struct pollfd){ must(open("/dev/null", O_RDWR)), POLLIN | POLLOUT, 0 };
	f[1] = (struct pollfd){ u, POLLIN, 0 };
	T(poll(f, 2, 5000));
	say("%s %s", events(f[0].revents), events(f[1].revents));
	return 0;
}
