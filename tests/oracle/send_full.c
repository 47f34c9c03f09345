// SPDX-License-Identifier: GPL-2.0
/* A full send buffer, blocking and not; every byte arrives in order. */
#include "oracle.h"

static unsigned char byte(size_t at)
{
	return at * 7 + (at >> 8) * 13 + (at >> 16);
}

static void *drain(void *arg)
{
	int fd = *(int *)arg;
	static unsigned char in[65536];
	size_t at = 0, wrong = 0;
	ssize_t n;

	while ((n = read(fd, in, sizeof(in))) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			wrong += in[i] != byte(at);
	say("reader: end %s, wrong bytes %zu", n ? ename(errno) : "ok", wrong);
	return (void *)at;
}

int main(void)
{
	static unsigned char out[1 << 20];
	int p[2];
	size_t at = 0;
	ssize_t n;
	void *got;
	pthread_t t;

	tcp_pair(AF_INET, p);
	for (int idle = 0; idle < 3;) {
		for (size_t i = 0; i < sizeof(out); i++)
			out[i] = byte(at + i);
		n = send(p[0], out, sizeof(out), MSG_DONTWAIT);
		if (n > 0) {
			at += n;
			idle = 0;
		} else {	/* full, unless the queue grows once more */
			need(errno == EAGAIN);
			sleep_ms(30);
			idle++;
		}
	}
	say("full after more than 64 KiB %d", at > 65536);
	nonblocking(p[0]);
	T(write(p[0], out, 1));
	say("polled %s", polled(p[0]));
	T(send(p[0], out, 1, MSG_DONTWAIT));
	must(fcntl(p[0], F_SETFL, 0));
	T(send(p[0], out, 1, MSG_DONTWAIT));
	t = spawn(drain, &p[1]);
	/* Blocking now: one call takes all of it. */
	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = byte(at + i);
	n = write(p[0], out, sizeof(out));
	say("blocking write took everything: %d", n == sizeof(out));
	at += n;
	T(shutdown(p[0], SHUT_WR));
	need(!pthread_join(t, &got));
	say("all arrived: %d", (size_t)got == at);
	return 0;
}
