// SPDX-License-Identifier: GPL-2.0
/* Threads that open and close sockets and files at once: numbers never get mixed up. */
#include "oracle.h"

static int wrong;

static void *churn(void *arg)
{
	int self = (long)arg;
	struct stat st;

	for (int i = 0; i < 1500; i++) {
		int socket_turn = (i + self) & 1;
		int fd = socket_turn ? socket(AF_INET, SOCK_DGRAM, 0) : open("/dev/null", O_RDONLY);

		if (fd < 0 || fstat(fd, &st) || (S_ISSOCK(st.st_mode) ? 1 : 0) != socket_turn)
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
		if (close(fd))
			__atomic_add_fetch(&wrong, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

int main(void)
{
	pthread_t t[4];
	int before = must(dup(0)), after;

	close(before);
	for (long i = 0; i < 4; i++)
		t[i] = spawn(churn, (void *)i);
	for (int i = 0; i < 4; i++)
		join(t[i]);
	N(wrong);
	after = must(dup(0));
	say("nothing left open %d", before == after);
	return 0;
}
