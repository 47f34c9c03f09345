// SPDX-License-Identifier: GPL-2.0
/*
 * profile_save - copies a node's counters (kernel/gcov) to files of the host
 *
 *	ring3 exec NODE profile_save OBJECTS TO
 *
 * The kernel has a file in its debugfs for each object, below the whole path of the folder it was
 * built in, OBJECTS. A path into debugfs is the host's for a program on a node (gate/path/path.c),
 * but what is opened relative to a directory of the node is the node's.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned int saved;

static void die(const char *what)
{
	fprintf(stderr, "profile_save: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void save_file(int dir, int to, const char *name)
{
	static char buf[1 << 16];
	int in = openat(dir, name, O_RDONLY);
	int out = openat(to, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t n;

	if (in < 0 || out < 0)
		die(name);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			die(name);
	if (n || close(out))
		die(name);
	close(in);
	saved++;
}

static void save(int from, int to)
{
	DIR *list = fdopendir(from);
	struct dirent *e;

	if (!list)
		die("fdopendir");
	while ((e = readdir(list))) {
		size_t len = strlen(e->d_name);
		struct stat st;

		if (e->d_name[0] == '.')
			continue;
		if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			die(e->d_name);
		if (S_ISDIR(st.st_mode)) {
			int below, into;

			if (mkdirat(to, e->d_name, 0755) && errno != EEXIST)
				die(e->d_name);
			below = openat(from, e->d_name, O_RDONLY | O_DIRECTORY);
			into = openat(to, e->d_name, O_RDONLY | O_DIRECTORY);
			if (below < 0 || into < 0)
				die(e->d_name);
			save(below, into);
			close(into);
		} else if (len > 5 && !strcmp(e->d_name + len - 5, ".gcda")) {
			save_file(from, to, e->d_name);
		}
	}
	closedir(list);
}

int main(int argc, char **argv)
{
	char path[4096];
	int node, from, to;

	if (argc != 3) {
		fprintf(stderr, "usage: profile_save OBJECTS TO\n");
		return 2;
	}
	node = open("/sys/class/net", O_RDONLY | O_DIRECTORY);
	if (node < 0)
		die("/sys/class/net");
	snprintf(path, sizeof(path), "../../kernel/debug/gcov/%s", argv[1]);
	from = openat(node, path, O_RDONLY | O_DIRECTORY);
	if (from < 0)
		die("the node's counters; is its image the profile flavour?");
	to = open(argv[2], O_RDONLY | O_DIRECTORY);
	if (to < 0)
		die(argv[2]);
	save(from, to);
	if (!saved) {
		fprintf(stderr, "profile_save: the node has no counters\n");
		return 1;
	}
	return 0;
}
