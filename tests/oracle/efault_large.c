// SPDX-License-Identifier: GPL-2.0
/* A fault far into a long transfer: how much was done is said, and nothing is lost or doubled. */
#include "bad_memory.h"

#define GOOD (256 * 1024)

int main(void)
{
	char *m = mmap(NULL, GOOD + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char in[2 * GOOD];
	int p[2];
	ssize_t n, got = 0;

	need(m != MAP_FAILED);
	for (int i = 0; i < GOOD; i++)
		m[i] = i * 31 + (i >> 8);
	must(munmap(m + GOOD, 4096));
	tcp_pair(AF_INET, p);
	nonblocking(p[1]);
	n = send(p[0], m, GOOD + 4096, MSG_DONTWAIT);
	say("sent a part of it %d", n > 0 && n <= GOOD);
	while (got < n) {
		ssize_t r = recv(p[1], in + got, sizeof(in) - got, 0);

		if (r > 0)
			got += r;
		else
			sleep_ms(1);
	}
	say("as many arrived %d, equal %d, no more %zd", got == n, !memcmp(in, m, n), recv(p[1], in, 1, MSG_DONTWAIT));

	must(fcntl(p[1], F_SETFL, 0));
	must(write(p[0], in, 60000));
	must(shutdown(p[0], SHUT_WR));
	n = recv(p[1], m + GOOD - 10000, 60000, MSG_WAITALL);
	say("received before the fault %s", n < 0 ? ename(errno) : n == 10000 ? "10000" : "some");
	got = n < 0 ? 0 : n;
	while ((n = recv(p[1], in, sizeof(in), 0)) > 0)
		got += n;
	say("nothing lost %d", got == 60000);
	return 0;
}
