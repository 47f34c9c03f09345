// SPDX-License-Identifier: GPL-2.0
/*
 * dirent.c - listing /proc/PID/fd without the gate's own descriptors
 */
#include "policy.h"

#include <linux/magic.h>

struct dirent64 {		/* struct linux_dirent64 */
	u64 ino;
	s64 off;
	u16 reclen;
	u8 type;
	char name[13];		/* enough for a number */
};
#define DIRENT_HEAD	offsetof(struct dirent64, name)

static bool on_proc(u32 fd)
{
	struct host_statfs st;

	return !host_syscall2(__NR_fstatfs, fd, (long)&st) && st.type == PROC_SUPER_MAGIC;
}

static bool name_is_reserved(const char *name)
{
	const char *end;
	u64 fd;

	if (name[0] < '0' || name[0] > '9')
		return false;
	fd = gate_strtou(name, 10, &end);
	return !*end && fd < 0x80000000u && reserved_fd(fd);
}

/* Removes the entries in place. The result is never 0 bytes, which would mean the end of the directory. */
static long drop_reserved(u64 user, long n)
{
	struct dirent64 d;
	long from = 0, to = 0, i;
	u64 chunk;
	u32 len;

	while (from < n) {
		len = n - from < (long)sizeof(d) ? n - from : (long)sizeof(d);
		memset(&d, 0, sizeof(d));
		if (gate_copy_in(&d, user_ptr(user + from), len) || d.reclen < DIRENT_HEAD ||
		    d.reclen > n - from)
			return n;
		d.name[sizeof(d.name) - 1] = 0;
		if (d.type == 10 /* DT_LNK */ && name_is_reserved(d.name)) {
			from += d.reclen;
			continue;
		}
		for (i = 0; to != from && i < d.reclen; i += 8) {
			len = d.reclen - i < 8 ? d.reclen - i : 8;
			if (gate_copy_in(&chunk, user_ptr(user + from + i), len) ||
			    gate_copy_out(user_ptr(user + to + i), &chunk, len))
				return n;
		}
		to += d.reclen;
		from += d.reclen;
	}
	return to;
}

long do_getdents64(struct gate_regs *r)
{
	u32 fd = r->a[0];
	long n, left;

	for (;;) {
		n = gate_host_regs(r);
		if (n <= 0 || likely(!on_proc(fd)))
			return n;
		left = drop_reserved(r->a[1], n);
		if (left)
			return left;
	}
}
