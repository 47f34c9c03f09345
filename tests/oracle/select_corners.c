// SPDX-License-Identifier: GPL-2.0
/* select() and pselect(): bad numbers, three sets, cleared bits, times. */
#include "oracle.h"

int main(void)
{
	int p[2], pipes[2], bad;
	fd_set r, w, x;
	struct timeval tv;

	tcp_pair(AF_INET, p);
	must(pipe(pipes));
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_ZERO(&x);
	FD_SET(p[0], &r);
	FD_SET(p[0], &w);
	FD_SET(pipes[1], &w);
	FD_SET(p[0], &x);
	FD_SET(pipes[0], &r);
	T(select(20, &r, &w, &x, NULL));
	say("%d %d %d %d %d", FD_ISSET(p[0], &r), FD_ISSET(p[0], &w), FD_ISSET(pipes[1], &w),
	    FD_ISSET(p[0], &x), FD_ISSET(pipes[0], &r));
	must(send(p[1], "!", 1, MSG_OOB));
	must(write(pipes[1], "x", 1));
	sleep_ms(20);
	FD_ZERO(&r);
	FD_ZERO(&x);
	FD_SET(p[0], &r);
	FD_SET(p[0], &x);
	FD_SET(pipes[0], &r);
	T(select(20, &r, NULL, &x, &(struct timeval){ 1, 0 }));
	say("%d %d %d", FD_ISSET(p[0], &r), FD_ISSET(p[0], &x), FD_ISSET(pipes[0], &r));
	T(select(-1, &r, NULL, NULL, NULL));
	T(select(0, NULL, NULL, NULL, &(struct timeval){ 0, 1000 }));
	tv = (struct timeval){ -1, 0 };
	T(select(20, &r, NULL, NULL, &tv));
	tv = (struct timeval){ 0, 5000000 };
	FD_ZERO(&w);
	FD_SET(p[0], &w);
	T(select(20, NULL, &w, NULL, &tv));
	bad = must(dup(p[0]));
	close(bad);
	FD_ZERO(&r);
	FD_SET(bad, &r);
	FD_SET(p[0], &r);
	T(select(20, &r, NULL, NULL, &(struct timeval){ 0, 0 }));
	T(select(20, (fd_set *)8, NULL, NULL, &(struct timeval){ 0, 0 }));
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	T(select(p[0], &r, NULL, NULL, &(struct timeval){ 0, 0 }));	/* nfds too small to see it */
	say("left alone: %d", FD_ISSET(p[0], &r));
	T(pselect(20, &r, NULL, NULL, &(struct timespec){ 0, -1 }, NULL));
	return 0;
}
