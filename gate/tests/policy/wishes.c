// SPDX-License-Identifier: GPL-2.0
/*
 * A signal by which a process of a sandbox asks another to set a limit of its own (gate/process/limits.c). Elsewhere the host judges
 * who may: there it is a signal like any other, which this process ignores.
 */
#include "t.h"

#define WISH	0x7233

int main(void)
{
	static struct {
		uint32_t number, what, sets;
		int32_t whom;
		uint64_t limit[2];
		uint64_t answer[8];
	} wish = { .number = 1, .what = RLIMIT_NOFILE, .sets = 1, .limit = { 77, 77 } };
	struct rlimit got;
	siginfo_t info;
	int ready[2], s;
	pid_t pid;
	char c;

	MUST(pipe(ready));
	pid = MUST(fork());
	if (!pid) {
		signal(SIGSTKFLT, SIG_IGN);
		MUST(write(ready[1], "x", 1));
		for (;;)
			usleep(1000);
	}
	MUST(read(ready[0], &c, 1));
	wish.whom = pid;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSTKFLT;
	info.si_errno = WISH;
	info.si_code = SI_QUEUE;
	info.si_pid = getpid();
	info.si_value.sival_ptr = &wish;
	T(syscall(SYS_rt_sigqueueinfo, pid, SIGSTKFLT, &info));
	usleep(300000);
	MUST(prlimit(pid, RLIMIT_NOFILE, NULL, &got));
	T(got.rlim_cur != 77);
	MUST(kill(pid, SIGKILL));
	MUST(waitpid(pid, &s, 0));
	T(WTERMSIG(s));
	return 0;
}
