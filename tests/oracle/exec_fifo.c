// SPDX-License-Identifier: GPL-2.0
/* Executing a FIFO fails at once, without waiting for its writer. */
#include "oracle.h"

int main(void)
{
	char dir[] = "/tmp/oracle-fifo.XXXXXX", name[64];
	int s;

	need(mkdtemp(dir));
	snprintf(name, sizeof(name), "%s/fifo", dir);
	must(mkfifo(name, 0755));
	if (!must(fork())) {
		alarm(3);
		execl(name, "fifo", NULL);
		say("%s", ename(errno));
		fflush(stdout);
		_exit(0);
	}
	must(wait(&s));
	N(WIFSIGNALED(s));
	unlink(name);
	rmdir(dir);
	return 0;
}
