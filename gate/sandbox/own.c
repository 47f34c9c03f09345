// SPDX-License-Identifier: GPL-2.0
/*
 * own.c - files of this process's own folder in /proc
 *
 * In a sandbox, programs can't see /proc: Landlock has no rule for directories that do not exist yet. There the
 * warden opens the file. The gate asks it by a call with the number of epoll_wait_old(), which is unused on x86-64
 * and passes containers' filters (ring3/sandbox/src/notify.rs). Elsewhere the host answers ENOSYS.
 */
#include "internal.h"

/* The order of OWN_FILES in ring3/sandbox/src/list.rs. */
static const char *const files[] = {
	[OWN_MAPS] = "/proc/self/maps",
	[OWN_STATUS] = "/proc/self/status",
};

long own_open(enum own_file file)
{
	long fd = host_syscall3(__NR_openat, AT_FDCWD, (long)files[file], O_RDONLY | O_CLOEXEC);
	long asked;

	if (fd != -EACCES)
		return fd;
	asked = host_syscall1(__NR_epoll_wait_old, file);
	return asked == -ENOSYS ? fd : asked;
}

#define LINE_MAX	512		/* of a mapping, without the file name */

bool own_maps_open(struct own_maps *m)
{
	m->fd = own_open(OWN_MAPS);
	m->len = m->taken = 0;
	return m->fd >= 0;
}

/* The next line; bytes beyond LINE_MAX are dropped. NULL: there is no more. */
static char *next_line(struct own_maps *m)
{
	char *eol;
	long n;

	memmove(m->text, m->text + m->taken, m->len - m->taken);
	m->len -= m->taken;
	for (;;) {
		m->text[m->len] = 0;
		eol = strchr(m->text, '\n');
		if (eol) {
			*eol = 0;
			m->taken = eol + 1 - m->text;
			return m->text;
		}
		if (m->len == sizeof(m->text) - 1)
			m->len = LINE_MAX;
		n = host_syscall3(__NR_read, m->fd, (long)m->text + m->len, sizeof(m->text) - 1 - m->len);
		if (n <= 0)
			return NULL;
		m->len += n;
	}
}

const char *own_maps_next(struct own_maps *m, u64 *start, u64 *end)
{
	const char *p = next_line(m);

	if (!p) {
		host_syscall1(__NR_close, m->fd);
		return NULL;
	}
	*start = gate_strtou(p, 16, &p);
	*end = *p == '-' ? gate_strtou(p + 1, 16, &p) : 0;
	return p;
}
