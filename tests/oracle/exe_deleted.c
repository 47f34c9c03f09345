// SPDX-License-Identifier: GPL-2.0
/* /proc/self/exe is what runs, after its file was deleted and after another took its name: to open, and to execute. */
#include "oracle.h"

static void copy(const char *from, const char *to, const char *more)
{
	char b[1 << 16];
	int i = must(open(from, O_RDONLY)), o = must(open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755));
	ssize_t n;

	while ((n = must(read(i, b, sizeof(b)))) > 0)
		must(write(o, b, n));
	must(write(o, more, strlen(more)));
	must(fchmod(o, 0755));
	close(i);
	close(o);
}

static long size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? -1 : st.st_size;
}

int main(int argc, char **argv)
{
	char name[] = "/tmp/oracle-exe.XXXXXX", link[256] = "";
	long before;
	int s;

	if (argc == 3) {
		say("executed again");
		return 0;
	}
	if (argc == 2) {
		before = size_of("/proc/self/exe");
		if (argv[1][0] == 'l')
			must(readlink("/proc/self/exe", link, sizeof(link) - 1));
		must(unlink(argv[0]));
		if (argv[1][1] == 'r')
			copy("/bin/true", argv[0], "another program");
		T(open("/proc/self/exe", O_RDONLY) >= 0);
		say("the same %d", size_of("/proc/self/exe") == before);
		execl("/proc/self/exe", argv[0], "1", "2", NULL);
		say("%s", ename(errno));
		return 1;
	}
	close(must(mkstemp(name)));
	for (int i = 0; i < 4; i++) {
		static const char *const how[] = { "-d", "-r", "ld", "lr" };

		copy("/proc/self/exe", name, "");
		fflush(stdout);
		if (!must(fork())) {
			execl(name, name, how[i], NULL);
			_exit(9);
		}
		must(wait(&s));
		say("%s: %d", how[i], WEXITSTATUS(s));
	}
	unlink(name);
	return 0;
}
