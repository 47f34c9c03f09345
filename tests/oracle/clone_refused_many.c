// SPDX-License-Identifier: GPL-2.0
/* A child that the host refuses costs no more than the one before it, however many they are. */
#include "oracle.h"
#include <linux/sched.h>

int main(void)
{
	struct clone_args args = { .flags = CLONE_PARENT_SETTID, .exit_signal = 200 };
	int left = 0;
	pid_t pid;

	alarm(25);
	for (int i = 0; i < 20000; i++)
		left += syscall(SYS_clone3, &args, sizeof(args)) == -1 && errno == EINVAL;
	N(left);
	pid = must(fork());
	if (!pid)
		_exit(0);
	say("a child %d", waitpid(pid, NULL, 0) == pid);
	return 0;
}
