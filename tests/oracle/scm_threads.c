// SPDX-License-Identifier: GPL-2.0
/* Threads that pass to each other, processes that fork meanwhile: nothing stays open. */
#include "scm.h"

#define ROUNDS 200

static int ux[2][2];

static void *sender(void *arg)
{
	int over = ux[(long)arg][0], i;

	for (i = 0; i < ROUNDS; i++) {
		int u = must(socket(AF_INET, SOCK_DGRAM, 0));

		must(pass_one(over, u));
		close(u);
	}
	return NULL;
}

static void *receiver(void *arg)
{
	int over = ux[(long)arg][1], i, good = 0;

	for (i = 0; i < ROUNDS; i++) {
		int fd = take_one(over, 0);

		good += !strcmp(kind(fd), "inet other");
		close(fd);
	}
	return (void *)(long)good;
}

int main(void)
{
	pthread_t t[4];
	void *good;
	int i, lowest, status;

	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux[0]));
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, ux[1]));
	lowest = must(dup(0));
	close(lowest);
	for (i = 0; i < 2; i++) {
		t[2 * i] = spawn(sender, (void *)(long)i);
		t[2 * i + 1] = spawn(receiver, (void *)(long)i);
	}
	for (i = 0; i < 20; i++) {
		pid_t pid = must(fork());

		if (!pid)
			_exit(0);
		must(waitpid(pid, &status, 0));
		need(!status);
	}
	for (i = 0; i < 2; i++) {
		join(t[2 * i]);
		need(!pthread_join(t[2 * i + 1], &good));
		say("%ld good ones", (long)good);
	}
	i = must(dup(0));
	say("the lowest free number is what it was: %d", i == lowest);
	return 0;
}
