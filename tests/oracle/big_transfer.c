// SPDX-License-Identifier: GPL-2.0
/* 64 MiB each way at once over TCP, in odd sizes; a checksum at each end. */
#include "oracle.h"

#define TOTAL (64u << 20)

struct end {
	int fd;
	uint64_t sum;
};

static uint64_t mix(uint64_t sum, const unsigned char *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ b[i]) * 1099511628211ULL;
	return sum;
}

static void *out(void *arg)
{
	struct end *e = arg;
	static __thread unsigned char b[100003];
	size_t sent = 0, chunk = 1;

	while (sent < TOTAL) {
		size_t n = chunk < TOTAL - sent ? chunk : TOTAL - sent, at = 0;

		for (size_t i = 0; i < n; i++)
			b[i] = (sent + i) * 2654435761u >> 24;
		e->sum = mix(e->sum, b, n);
		while (at < n)
			at += must(write(e->fd, b + at, n - at));
		sent += n;
		chunk = chunk * 7 % 100003 + 1;
	}
	must(shutdown(e->fd, SHUT_WR));
	return NULL;
}

static void *in(void *arg)
{
	struct end *e = arg;
	static __thread unsigned char b[77777];
	size_t got = 0;
	ssize_t n;

	while ((n = must(read(e->fd, b, sizeof(b)))) > 0) {
		e->sum = mix(e->sum, b, n);
		got += n;
	}
	return (void *)got;
}

int main(void)
{
	int p[2];
	struct end e[4];
	pthread_t t[4];
	void *got[4];

	tcp_pair(AF_INET, p);
	for (int i = 0; i < 4; i++) {
		e[i] = (struct end){ p[i & 1], 14695981039346656037ULL };
		t[i] = spawn(i < 2 ? out : in, &e[i]);
	}
	for (int i = 0; i < 4; i++)
		need(!pthread_join(t[i], &got[i]));
	say("received %zu %zu", (size_t)got[2], (size_t)got[3]);
	say("sums equal %d %d", e[0].sum == e[3].sum, e[1].sum == e[2].sum);
	return 0;
}
