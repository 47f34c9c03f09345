// SPDX-License-Identifier: GPL-2.0
/* Threads that splice from one TCP socket into pipes at once: each byte goes to one of them, once. */
#include "oracle.h"

#define TOTAL	(4u << 20)
#define MOVERS	3
#define CHUNK	4096

static int pipes[MOVERS][2], far_side, near_side;
static unsigned int sent[256], came[MOVERS][256];
static long moved[MOVERS], arrived[MOVERS];

static void *writer(void *none)
{
	unsigned char bytes[1000];
	unsigned int x = 1, n;

	for (unsigned int left = TOTAL; left; left -= n) {
		n = left < sizeof(bytes) ? left : sizeof(bytes);
		for (unsigned int i = 0; i < n; i++) {
			x = x * 1664525 + 1013904223;
			bytes[i] = x >> 24;
			sent[bytes[i]]++;
		}
		for (unsigned int at = 0; at < n;)
			at += must(write(far_side, bytes + at, n - at));
	}
	must(shutdown(far_side, SHUT_WR));
	return none;
}

static void *mover(void *which)
{
	long i = (long)which, n;

	while ((n = must(splice(near_side, NULL, pipes[i][1], NULL, CHUNK, 0))) > 0)
		moved[i] += n;
	must(close(pipes[i][1]));
	return NULL;
}

static void *reader(void *which)
{
	static __thread unsigned char bytes[65536];
	long i = (long)which, n;

	while ((n = must(read(pipes[i][0], bytes, sizeof(bytes)))) > 0) {
		arrived[i] += n;
		while (n)
			came[i][bytes[--n]]++;
	}
	return NULL;
}

int main(void)
{
	pthread_t writes, moves[MOVERS], reads[MOVERS];
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	long all_moved = 0, all_arrived = 0, wrong = 0;
	int listener = must(socket(AF_INET, SOCK_STREAM, 0));

	must(bind(listener, (struct sockaddr *)&to, len));
	must(listen(listener, 1));
	must(getsockname(listener, (struct sockaddr *)&to, &len));
	near_side = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(near_side, (struct sockaddr *)&to, len));
	far_side = must(accept(listener, NULL, NULL));
	for (long i = 0; i < MOVERS; i++) {
		must(pipe(pipes[i]));
		reads[i] = spawn(reader, (void *)i);
	}
	for (long i = 0; i < MOVERS; i++)
		moves[i] = spawn(mover, (void *)i);
	writes = spawn(writer, NULL);
	join(writes);
	for (int i = 0; i < MOVERS; i++) {
		join(moves[i]);
		join(reads[i]);
		all_moved += moved[i];
		all_arrived += arrived[i];
	}
	for (int value = 0; value < 256; value++) {
		for (int i = 0; i < MOVERS; i++)
			sent[value] -= came[i][value];
		wrong += sent[value] != 0;
	}
	N(all_moved == TOTAL);
	N(all_arrived == TOTAL);
	N(wrong);
	return 0;
}
