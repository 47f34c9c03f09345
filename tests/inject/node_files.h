/* SPDX-License-Identifier: GPL-2.0 */
/*
 * node_files.h - files of the node's kernel that programs do not get by path
 *
 * A path into debugfs or to /proc/self is the host's for a program on a node (gate/path/path.c), but what
 * is opened relative to a directory of the node is the node's.
 */
#ifndef NODE_FILES_H
#define NODE_FILES_H

#include "oracle.h"

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "inject: ");
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(125);
}

static int open_beside(const char *dir, const char *path, int flags)
{
	int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	if (at < 0)
		die("%s: %m", dir);
	fd = openat(at, path, flags | O_CLOEXEC);
	close(at);
	return fd;
}

/* A file of debugfs, of a kernel that has fault injection. */
static int open_debug(const char *name, int flags)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "../../kernel/debug/%s", name);
	fd = open_beside("/sys/class/net", path, flags);
	if (fd < 0)
		die("%s: %m; is this a node with the debug image, and are you root?", name);
	return fd;
}

/* Documentation/fault-injection/fault-injection.rst: /proc/self/fail-nth */
static int open_fail_nth(void)
{
	int fd = open_beside("/proc/net", "../fail-nth", O_RDWR);

	if (fd < 0)
		die("fail-nth: %m; is this a node with the debug image?");
	return fd;
}

static void write_text(int fd, const char *text, const char *what)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("%s: %m", what);
}

/* A number in a file of debugfs. */
static long read_number(const char *name)
{
	int fd = open_debug(name, O_RDONLY);
	char text[64];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		die("%s: %s", name, n ? strerror(errno) : "empty");
	close(fd);
	text[n] = 0;
	return strtol(text, NULL, 0);
}

/* The n-th place in the kernel from here on where this thread's call can fail does so; 0: none. */
static void arm(int fd, int n)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	while (write(fd, text, strlen(text)) < 0)
		if (errno != EFAULT)	/* this has taken the last chance: it copies, too */
			die("fail-nth: %m");
}

/* Has it come to that since? Else there are not so many. */
static bool has_failed(int fd)
{
	char text[16] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n < 0 && errno == EFAULT)
		return false;	/* this has taken it */
	if (n <= 0)
		die("fail-nth: %m");
	return atoi(text) == 0;
}

#endif
