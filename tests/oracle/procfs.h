/* SPDX-License-Identifier: GPL-2.0 */
/* procfs.h - reading small files of /proc and /sys */
#ifndef PROCFS_H
#define PROCFS_H

#include "oracle.h"

/* Contents, or the name of the error. Not reentrant. */
static const char *contents(const char *path)
{
	static char text[1 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t n, used = 0;

	if (fd < 0)
		return ename(errno);
	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += n;
	close(fd);
	if (n < 0)
		return ename(errno);
	text[used] = 0;
	return text;
}

static int lines(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static void first_line(const char *path)
{
	const char *text = contents(path);

	say("%s: %.*s", path, (int)strcspn(text, "\n"), text);
}

#endif /* PROCFS_H */
