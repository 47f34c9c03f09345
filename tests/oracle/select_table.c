// SPDX-License-Identifier: GPL-2.0
/* select() with a number beyond the table of descriptors, as getdtablesize() gives it, and sets that end before that. */
#include "oracle.h"

int main(void)
{
	struct timeval second = { 1, 0 };
	struct rlimit files;
	int u[2], p[2], high;
	fd_set *s;
	char *m;

	m = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	need(m != MAP_FAILED);
	must(mprotect(m + 4096, 4096, PROT_NONE));
	s = (fd_set *)(m + 4096 - sizeof(*s));
	udp_pair(AF_INET, u);
	must(pipe(p));
	must(send(u[1], "x", 1, 0));
	sleep_ms(20);

	FD_SET(u[0], s);
	T(select(65536, s, NULL, NULL, &second));
	T(FD_ISSET(u[0], s));
	T(select(1 << 30, s, NULL, NULL, &second));
	/* Of both kinds, and with something else behind the set. */
	s = (fd_set *)m;
	memset(s + 1, 0xff, 64);
	FD_SET(u[0], s);
	FD_SET(p[0], s);
	T(select(65536, s, NULL, NULL, &second));
	T(FD_ISSET(u[0], s));
	T(FD_ISSET(p[0], s));

	/* A high number does count. */
	must(getrlimit(RLIMIT_NOFILE, &files));
	if (files.rlim_max < 4096)
		skip("no 4096 descriptors here");
	files.rlim_cur = files.rlim_max;
	must(setrlimit(RLIMIT_NOFILE, &files));
	high = must(fcntl(u[0], F_DUPFD, 2000));
	memset(m, 0, 4096);
	FD_SET(p[0], s);
	((unsigned long *)m)[high / 64] |= 1ul << high % 64;
	T(select(4096, s, NULL, NULL, &second));
	T(((unsigned long *)m)[high / 64] >> high % 64);
	return 0;
}
