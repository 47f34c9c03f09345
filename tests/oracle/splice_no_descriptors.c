// SPDX-License-Identifier: GPL-2.0
/* splice() between a pipe and a socket in a process that has all the descriptors it may have. */
#include "oracle.h"

int main(void)
{
	struct rlimit limit;
	int s[2], p[2];
	char buf[16];

	alarm(20);
	tcp_pair(AF_INET, s);
	must(pipe(p));
	must(getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 50;
	must(setrlimit(RLIMIT_NOFILE, &limit));
	while (dup(0) >= 0)
		;
	say("no more: %s", ename(errno));
	must(send(s[0], "abc", 3, 0));
	need(wait_for(s[1], POLLIN));
	T(splice(s[1], NULL, p[1], NULL, 100, 0));
	T(splice(p[0], NULL, s[1], NULL, 100, 0));
	T(recv(s[0], buf, sizeof(buf), 0));
	T(dup(0));
	return 0;
}
