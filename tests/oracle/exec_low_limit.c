// SPDX-License-Identifier: GPL-2.0
/* A program that has lowered its hard limit of descriptors executes others, as root and as a user who may not raise it again. */
#include "oracle.h"
#include <linux/capability.h>

static void no_raising(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	must(syscall(SYS_capget, &head, data));
	data[0].effective &= ~(1u << CAP_SYS_RESOURCE);
	data[0].permitted &= ~(1u << CAP_SYS_RESOURCE);
	data[0].inheritable &= ~(1u << CAP_SYS_RESOURCE);
	must(syscall(SYS_capset, &head, data));
}

static void run(const char *what, const char *script)
{
	int s;

	fflush(stdout);
	if (!must(fork())) {
		if (script && script[0] == '/' && script[1] == 't')
			execl(script, script, NULL);
		else if (script)
			execl("/bin/sh", "sh", "-c", script, NULL);
		else
			execl("/bin/true", "true", NULL);
		say("%s", ename(errno));
		_exit(9);
	}
	must(wait(&s));
	say("%s: %d", what, WIFEXITED(s) ? WEXITSTATUS(s) : -1);
}

int main(void)
{
	struct rlimit r = { 512, 512 };
	char name[] = "/tmp/oracle-script.XXXXXX";
	int fd;

	must(setrlimit(RLIMIT_NOFILE, &r));
	run("a program", NULL);
	run("a script", "ulimit -n; ulimit -Hn; /bin/true && readlink /proc/self/exe");
	no_raising();
	run("a program", NULL);
	run("a script", "ulimit -n; ulimit -Hn; /bin/true && readlink /proc/self/exe; exec /bin/sh -c 'echo again'");
	/* Its interpreter gets another number than the script, since those below are closed by exec. */
	fd = must(mkstemp(name));
	must(dprintf(fd, "#!/bin/bash\necho $(ls /proc/self/fd | wc -l)\nreadlink /proc/$$/exe\n") > 0 ? 0 : -1);
	must(fchmod(fd, 0755));
	close(fd);
	must(open("/dev/null", O_RDONLY | O_CLOEXEC));
	must(open("/dev/null", O_RDONLY | O_CLOEXEC));
	run("a file with #!", name);
	unlink(name);
	run("none", "/nonexistent; exec /nonexistent");
	/* None of them has left anything open. */
	T(dup(0));
	return 0;
}
