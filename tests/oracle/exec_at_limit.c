// SPDX-License-Identifier: GPL-2.0
/* exec takes no descriptor of its own: it goes where all that the limit allows are in use. */
#include "oracle.h"

int main(void)
{
	struct rlimit r;
	int s;

	must(getrlimit(RLIMIT_NOFILE, &r));
	r.rlim_cur = 64;
	must(setrlimit(RLIMIT_NOFILE, &r));
	if (!must(fork())) {
		while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
			;
		execl("/bin/echo", "echo", "executed", NULL);
		_exit(errno);
	}
	must(wait(&s));
	N(WEXITSTATUS(s));
	must(getrlimit(RLIMIT_NOFILE, &r));
	N(r.rlim_cur);
	return 0;
}
