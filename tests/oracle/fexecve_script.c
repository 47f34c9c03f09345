// SPDX-License-Identifier: GPL-2.0
/* A script by its descriptor: one that is closed by the exec can't be read by the interpreter, so there is no exec. */
#include "oracle.h"

static void child(const char *what, int dir, const char *path, int flags)
{
	char *args[] = { "script", NULL };
	int s;

	fflush(stdout);
	if (!must(fork())) {
		syscall(SYS_execveat, dir, path, args, environ, flags);
		say("%s: %s", what, ename(errno));
		fflush(stdout);
		_exit(1);
	}
	must(wait(&s));
	say("%s: status %d", what, s);
}

static void file(const char *path, const char *text)
{
	int fd = must(open(path, O_CREAT | O_WRONLY, 0700));

	must(write(fd, text, strlen(text)));
	must(close(fd));
}

int main(void)
{
	char dir[] = "/tmp/oracle-script.XXXXXX", path[64];
	int kept, closed, at;

	need(mkdtemp(dir));
	must(chdir(dir));
	snprintf(path, sizeof(path), "%s/good", dir);
	file("good", "#!/bin/sh\nexit 7\n");
	file("bad", "#!\n");
	file("none", "#!/nonexistent\n");
	kept = must(open("good", O_RDONLY));
	closed = must(open("good", O_RDONLY | O_CLOEXEC));
	child("kept", kept, "", AT_EMPTY_PATH);
	child("closed", closed, "", AT_EMPTY_PATH);
	child("closed, bad", must(open("bad", O_RDONLY | O_CLOEXEC)), "", AT_EMPTY_PATH);
	child("closed, no interpreter", must(open("none", O_RDONLY | O_CLOEXEC)), "", AT_EMPTY_PATH);
	child("closed, a program", must(open("/bin/true", O_RDONLY | O_CLOEXEC)), "", AT_EMPTY_PATH);
	at = must(open(dir, O_PATH | O_CLOEXEC));
	child("a closed directory", at, "good", 0);
	child("a closed directory, absolute", at, path, 0);
	must(fcntl(at, F_SETFD, 0));
	child("a directory", at, "good", 0);
	child("by name", AT_FDCWD, "good", 0);
	unlink("good");
	unlink("bad");
	unlink("none");
	rmdir(dir);
	return 0;
}
