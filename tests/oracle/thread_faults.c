// SPDX-License-Identifier: GPL-2.0
/* Threads that start while others' calls fail for their bad pointers start as they should. */
#include "oracle.h"

#define RECEIVERS	6
#define THREADS		4000

static volatile int over;
static int pairs[RECEIVERS][2];

/* Waits with a buffer that isn't there. */
static void *receives(void *arg)
{
	int *fd = arg;

	while (!over)
		if (recv(fd[1], (void *)8, 100, 0) < 0 && errno != EFAULT)
			break;
	return NULL;
}

static void *sends(void *arg)
{
	for (int i = 0; !over; i++)
		send(pairs[i % RECEIVERS][0], "x", 1, 0);
	return arg;
}

static void *starts(void *arg)
{
	return (char *)arg + 1;
}

int main(void)
{
	pthread_t sender, receiver[RECEIVERS];
	int bad = 0;

	for (int i = 0; i < RECEIVERS; i++) {
		udp_pair(AF_INET, pairs[i]);
		receiver[i] = spawn(receives, pairs[i]);
	}
	sender = spawn(sends, NULL);
	for (long i = 0; i < THREADS; i++) {
		void *ret;

		pthread_join(spawn(starts, (void *)i), &ret);
		bad += ret != (void *)(i + 1);
	}
	N(bad);
	over = 1;
	join(sender);
	for (int i = 0; i < RECEIVERS; i++)
		send(pairs[i][0], "x", 1, 0);
	for (int i = 0; i < RECEIVERS; i++)
		join(receiver[i]);
	return 0;
}
