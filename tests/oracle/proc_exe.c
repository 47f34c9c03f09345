// SPDX-License-Identifier: GPL-2.0
/* Which program runs, by /proc/self/exe and /proc/PID/exe: also after an exec that fails, or that shares descriptors. */
#include "oracle.h"
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#define TOO_LONG	(200 << 10)	/* for one argument: MAX_ARG_STRLEN is 128 KiB */
#define TURNS		500		/* of 10 ms */

static char own[4096];

static void same(const char *when)
{
	char now[4096] = "", magic[4] = "";
	int fd;

	now[must(readlink("/proc/self/exe", now, sizeof(now) - 1))] = 0;
	fd = must(open("/proc/self/exe", O_RDONLY));
	must(read(fd, magic, sizeof(magic)));
	close(fd);
	say("%s: %s, %s", when, strcmp(now, own) ? "another program" : "the same",
	    memcmp(magic, "\177ELF", 4) ? "not to be read" : "to be read");
}

static void failing_exec(void)
{
	static char text[TOO_LONG];
	char *argv[] = { "true", text, NULL }, *none[] = { NULL };

	memset(text, 'x', sizeof(text) - 1);
	say("exec: %s", execve("/bin/true", argv, none) ? strerrorname_np(errno) : "?");
	say("exec: %s", execve("/nonexistent", none, none) ? strerrorname_np(errno) : "?");
}

static int exec_true(void *arg)
{
	char *argv[] = { "true", NULL };

	(void)arg;
	execv("/bin/true", argv);
	_exit(1);
}

/* Its exec may not touch what its parent has, which shares all descriptors until then. */
static void exec_beside(void)
{
	static char stack[64 << 10] __attribute__((aligned(16)));
	int status;
	pid_t pid;

	pid = must(clone(exec_true, stack + sizeof(stack),
			 CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, NULL));
	must(waitpid(pid, &status, 0));
	say("a program beside us: status %d", status);
}

static void seen_from_outside(const char *what, const char *name, const char *path,
			      char *const argv[])
{
	char link[64], exe[4096] = "";
	pid_t pid = must(fork());
	int i;

	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		dup2(null, 1);
		dup2(null, 2);
		execv(path, argv);
		_exit(1);
	}
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	for (i = 0; i < TURNS; i++) {
		ssize_t n = readlink(link, exe, sizeof(exe) - 1);

		exe[n > 0 ? n : 0] = 0;
		/* Amid an exec a node may name the gate, or another of its files. */
		if (strrchr(exe, '/') && !strcmp(strrchr(exe, '/') + 1, name))
			break;
		usleep(10000);
	}
	say("%s: %s", what, strrchr(exe, '/') ? strrchr(exe, '/') : "?");
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0));
}

/* In a process that has not been asked before. */
static void in_child(const char *when, void (*what)(void))
{
	pid_t pid;

	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		what();
		same(when);
		fflush(stdout);
		_exit(0);
	}
	must(waitpid(pid, NULL, 0));
}

int main(int argc, char **argv)
{
	char *sleeper[] = { "sleep", "60", NULL }, *none[] = { "x", NULL };
	char script[] = "/tmp/ring3-exe-XXXXXX";
	int fd;

	(void)argc;
	if (!realpath(argv[0], own))
		return 1;
	in_child("after an exec that failed", failing_exec);
	in_child("after another program's exec", exec_beside);
	same("at last");
	seen_from_outside("a child", "sleep", "/bin/sleep", sleeper);
	fd = must(mkstemp(script));
	must(write(fd, "#!/usr/bin/tail -f\n", 19));
	must(fchmod(fd, 0755));
	close(fd);
	seen_from_outside("a script", "tail", script, none);
	unlink(script);
	return 0;
}
