// SPDX-License-Identifier: GPL-2.0
/* A process executes what another one runs, by /proc/PID/exe. */
#include "oracle.h"

int main(int argc, char **argv)
{
	char exe[64], name[64] = "";
	pid_t pid, other;
	int s, fd;

	alarm(20);
	if (argc == 3) {
		fd = must(open("/proc/self/comm", O_RDONLY));
		must(read(fd, name, sizeof(name) - 1));
		say("%s %s, called %s", argv[1], argv[2], strtok(name, "\n"));
		return 0;
	}
	other = must(fork());
	if (!other) {
		pause();
		_exit(0);
	}
	snprintf(exe, sizeof(exe), "/proc/%d/exe", other);
	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		pid = must(fork());
		if (!pid) {
			if (i)
				syscall(SYS_execveat, AT_FDCWD, exe, (char *[]){ "x", "executed", "at", NULL },
					environ, 0);
			else
				execl(exe, "x", "executed", "again", NULL);
			say("%s", ename(errno));
			fflush(stdout);
			_exit(1);
		}
		must(waitpid(pid, &s, 0));
		N(WIFEXITED(s) ? WEXITSTATUS(s) : -1);
	}
	kill(other, SIGKILL);
	must(waitpid(other, NULL, 0));
	(void)argv;
	return 0;
}
