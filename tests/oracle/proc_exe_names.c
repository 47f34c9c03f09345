// SPDX-License-Identifier: GPL-2.0
/* /proc/self/exe of a program that was started by one name or another, and whose file moves then. */
#include "oracle.h"
#include <sys/wait.h>

static char dir[] = "/tmp/ring3-names-XXXXXX";

/* The program that is started: does `what' to its file, then looks. */
static int look(const char *where, const char *what)
{
	char exe[4096] = "";

	must(chdir(where));
	if (!strcmp(what, "renamed"))
		must(rename("prog", "moved"));
	else if (!strcmp(what, "gone"))
		must(unlink("prog"));
	else if (!strcmp(what, "replaced"))
		must(rename("spare", "prog"));
	exe[must(readlink("/proc/self/exe", exe, sizeof(exe) - 1))] = 0;
	say("  %s", strncmp(exe, where, strlen(where)) ? exe : exe + strlen(where));
	return 0;
}

static void copy(const char *to)
{
	static char text[1 << 16];
	int from = must(open("/proc/self/exe", O_RDONLY)), fd;
	ssize_t n;

	fd = must(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	while ((n = must(read(from, text, sizeof(text)))) > 0)
		must(write(fd, text, n));
	close(fd);
	close(from);
}

static void start(const char *name, const char *what, bool absolute)
{
	char path[256];
	pid_t pid;

	snprintf(path, sizeof(path), "%s%s", absolute ? dir : "", name);
	say("%s %s", name, what);
	fflush(stdout);
	copy("prog");
	copy("spare");
	pid = must(fork());
	if (!pid) {
		execl(path, "prog", dir, what, NULL);
		_exit(1);
	}
	must(waitpid(pid, NULL, 0));
}

int main(int argc, char **argv)
{
	if (argc > 2)
		return look(argv[1], argv[2]);
	must((long)mkdtemp(dir) ? 0 : -1);
	must(chdir(dir));
	must(mkdir("sub", 0755));
	must(symlink("prog", "link"));
	must(symlink(".", "here"));
	start("/prog", "", true);
	start("/link", "", true);
	start("/here/prog", "", true);
	start("/sub/../prog", "", true);
	start("/./prog", "", true);
	start("//prog", "", true);
	start("./prog", "", false);
	start("/prog", "renamed", true);
	start("/prog", "gone", true);
	start("/prog", "replaced", true);
	unlink("prog");
	unlink("moved");
	unlink("spare");
	unlink("link");
	unlink("here");
	rmdir("sub");
	rmdir(dir);
	return 0;
}
