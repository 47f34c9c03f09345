// SPDX-License-Identifier: GPL-2.0
/* recvmmsg()'s time-out: checked after each datagram, the remaining time is written back; signals. */
#include "oracle.h"

static int u[2];

static void on_alarm(int sig)
{
}

static void *sender(void *arg)
{
	for (int i = 0; i < 6; i++) {
		sleep_ms(60);
		must(send(u[0], "datagram", i + 1, 0));
	}
	return arg;
}

/* Returns how many came; without `what', says nothing. */
static int receive(const char *what, int count, int flags, struct timespec *ts)
{
	struct mmsghdr m[8];
	struct iovec iov[8];
	char b[8][16];

	memset(m, 0, sizeof(m));
	for (int i = 0; i < 8; i++) {
		iov[i] = (struct iovec){ b[i], 16 };
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	int n = recvmmsg(u[1], m, count, flags, ts);

	if (!what)
		return n;
	printf("%s: ", what);
	if (n < 0)
		printf("%s", ename(errno));
	for (int i = 0; i < n; i++)
		printf(" %u", m[i].msg_len);
	printf("\n");
	return n;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = on_alarm };
	struct itimerval it = { .it_value.tv_usec = 50000 };
	struct timespec ts;
	pthread_t thread;
	int some;

	udp_pair(AF_INET, u);
	must(sigaction(SIGALRM, &sa, NULL));
	ts = (struct timespec){ .tv_nsec = 1000000000 };
	receive("bad time", 8, 0, &ts);
	ts = (struct timespec){ .tv_sec = -1 };
	receive("negative time", 8, 0, &ts);
	receive("bad pointer", 8, 0, (void *)8);
	must(send(u[0], "abc", 3, 0));
	must(send(u[0], "abc", 2, 0));
	ts = (struct timespec){ 0 };
	receive("no time at all", 8, 0, &ts);
	receive("the second", 8, MSG_DONTWAIT, NULL);
	must(send(u[0], "abc", 3, 0));
	ts = (struct timespec){ .tv_sec = 5 };
	receive("one is enough", 8, MSG_WAITFORONE, &ts);
	N(ts.tv_sec == 4 && ts.tv_nsec > 500000000);
	ts = (struct timespec){ .tv_sec = 5 };
	receive("nothing there", 8, MSG_DONTWAIT, &ts);
	N(ts.tv_sec);

	/* The time is over after the third datagram or so, with the next one. */
	must(pthread_create(&thread, NULL, sender, NULL) ? -1 : 0);
	ts = (struct timespec){ .tv_nsec = 150000000 };
	some = receive(NULL, 8, 0, &ts);
	say("some of six: %d", some > 0 && some < 6);
	N(ts.tv_sec == 0 && ts.tv_nsec == 0);
	pthread_join(thread, NULL);
	say("with the others, all: %d", some + receive(NULL, 8, MSG_DONTWAIT, NULL) == 6);

	must(setitimer(ITIMER_REAL, &it, NULL));
	ts = (struct timespec){ .tv_sec = 5 };
	receive("a signal first", 8, 0, &ts);
	must(setitimer(ITIMER_REAL, &it, NULL));
	must(send(u[0], "abc", 3, 0));
	ts = (struct timespec){ .tv_sec = 5 };
	receive("a signal after one", 8, 0, &ts);
	udp_pair(AF_INET, u);		/* without what the host has left there: error 512 */
	must(setsockopt(u[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_usec = 50000 },
			sizeof(struct timeval)));
	receive("the socket's own time-out", 8, 0, NULL);
	must(send(u[0], "abc", 3, 0));
	receive("after one", 8, 0, NULL);
	return 0;
}
