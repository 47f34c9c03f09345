// SPDX-License-Identifier: GPL-2.0
/*
 * Data sent and received at every place of a page, relative to wherever the kernel has it, and
 * cut off by memory that is not there after any byte: copies may take another way for some of these
 * places, and have to say in all of them how far they came.
 */
#include "oracle.h"
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define PAGE	4096
#define LEN	211		/* six turns of 32 bytes and some */

static unsigned char *from, *to;	/* two pages each, then none */

static unsigned char pattern(int i, int turn)
{
	return i * 7 + turn * 13 + (i >> 8);
}

static unsigned char *pages(void)
{
	unsigned char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	must(p == MAP_FAILED ? -1 : 0);
	must(mprotect(p + 2 * PAGE, PAGE, PROT_NONE));
	return p;
}

static void datagram_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);

	fd[0] = must(socket(AF_INET, SOCK_DGRAM, 0));
	fd[1] = must(socket(AF_INET, SOCK_DGRAM, 0));
	must(bind(fd[1], (struct sockaddr *)&a, sizeof(a)));
	must(getsockname(fd[1], (struct sockaddr *)&a, &len));
	must(connect(fd[0], (struct sockaddr *)&a, sizeof(a)));
}

static void stream_pair(int fd[2])
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = must(socket(AF_INET, SOCK_STREAM, 0));

	must(bind(listener, (struct sockaddr *)&a, sizeof(a)));
	must(listen(listener, 1));
	must(getsockname(listener, (struct sockaddr *)&a, &len));
	fd[0] = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(fd[0], (struct sockaddr *)&a, sizeof(a)));
	fd[1] = must(accept(listener, NULL, NULL));
	close(listener);
}

/* Sent from each place and received at each place; how many came as they went. */
static void places(int fd[2])
{
	int good = 0;

	for (int at = 0; at < PAGE; at++) {
		int len = LEN - at % 64, back = (at * 3) % PAGE, same = 1;

		for (int i = 0; i < len; i++)
			from[at + i] = pattern(i, at);
		memset(to, 0, 2 * PAGE);
		must(send(fd[0], from + at, len, 0));
		if (must(recv(fd[1], to + back, LEN, 0)) != len)
			same = 0;
		for (int i = 0; i < len; i++)
			same &= to[back + i] == pattern(i, at);
		/* And nothing beside it. */
		if (back)
			same &= !to[back - 1];
		same &= !to[back + len];
		good += same;
	}
	say("%d of %d places", good, PAGE);
}

/* Memory ends after `n` bytes of what is sent. */
static void cut_sends(int fd[2])
{
	long sums[LEN + 1];

	for (int n = 0; n <= LEN; n++) {
		unsigned char *p = from + 2 * PAGE - n;
		ssize_t sent, got;

		for (int i = 0; i < n; i++)
			p[i] = pattern(i, n);
		errno = 0;
		sent = send(fd[0], p, LEN, MSG_NOSIGNAL);
		sums[n] = sent < 0 ? -errno : sent;
		if (sent <= 0)
			continue;
		got = must(recv(fd[1], to, LEN, 0));
		for (int i = 0; i < got; i++)
			if (to[i] != pattern(i, n))
				sums[n] = 1000 + i;
	}
	for (int n = 0; n <= LEN; n++)
		printf("%ld%c", sums[n], n % 16 == 15 || n == LEN ? '\n' : ' ');
}

/* Memory ends after `n` bytes of where it is received, at several places of the sender's. */
static void cut_receives(int fd[2])
{
	for (int at = 0; at < 64; at += 5) {
		long sum = 0, bad = 0;

		for (int n = 0; n <= LEN; n++) {
			unsigned char *p = to + 2 * PAGE - n;
			ssize_t got;

			for (int i = 0; i < LEN; i++)
				from[at + i] = pattern(i, n);
			memset(to, 0, 2 * PAGE);
			must(send(fd[0], from + at, LEN, 0));
			errno = 0;
			got = recv(fd[1], p, LEN, MSG_DONTWAIT);
			sum = sum * 31 + (got < 0 ? -errno : got);
			for (int i = 0; i < got && i < n; i++)
				bad += p[i] != pattern(i, n);
			/* Drains a stream. */
			while (recv(fd[1], from + PAGE, LEN, MSG_DONTWAIT) > 0)
				;
		}
		say("from %d: %ld, %ld bytes wrong", at, sum, bad);
	}
}

int main(void)
{
	int fd[2];

	from = pages();
	to = pages();
	datagram_pair(fd);
	places(fd);
	cut_sends(fd);
	cut_receives(fd);
	stream_pair(fd);
	places(fd);
	cut_sends(fd);
	cut_receives(fd);
	return 0;
}
