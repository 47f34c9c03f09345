// SPDX-License-Identifier: GPL-2.0
/*
 * mlock.c - mlockall() of what is the program's
 *
 * The node's memory lies in each of its processes, and is as large as the node may become. The host would lock all of
 * it, and make each page for that; or refuse, for it counts for RLIMIT_MEMLOCK. So the mappings that are
 * there are locked one by one, without the node's and the gate's. Those to come the host sees to.
 */
#include "policy.h"

#ifndef MCL_CURRENT
#define MCL_CURRENT	1		/* asm-generic/mman.h */
#define MCL_FUTURE	2
#define MCL_ONFAULT	4
#define MLOCK_ONFAULT	1
#endif

#define LINE_MAX	512		/* of /proc/self/maps, without the file's name */

struct maps {
	long fd;
	u32 len;
	char text[4096];
};

/* The next line; what it has beyond LINE_MAX is left out. NULL: there is no more. */
static char *next_line(struct maps *m, u32 *taken)
{
	char *eol;
	long n;

	memmove(m->text, m->text + *taken, m->len - *taken);
	m->len -= *taken;
	for (;;) {
		m->text[m->len] = 0;
		eol = strchr(m->text, '\n');
		if (eol) {
			*eol = 0;
			*taken = eol + 1 - m->text;
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

static long lock_one(const char *line, u32 flags)
{
	const char *p;
	u64 start = gate_strtou(line, 16, &p), end = *p == '-' ? gate_strtou(p + 1, 16, &p) : 0;
	long ret;

	if (end <= start || (start < RING3_SPACE_END && end > RING3_GATE_BASE) || start >> 47)
		return 0;
	/* Without its pages first, which only the limit and the right can refuse: Linux does not mind those that can't be had. */
	ret = host_syscall3(__NR_mlock2, start, end - start, MLOCK_ONFAULT);
	if (!ret && !(flags & MLOCK_ONFAULT))
		host_syscall3(__NR_mlock2, start, end - start, 0);
	return ret == -ENOMEM || ret == -EPERM ? ret : 0;
}

long do_mlockall(struct gate_regs *r)
{
	u64 flags = r->a[0];
	u32 taken = 0;
	struct maps m = { .len = 0 };
	char *line;
	long ret = 0;

	if (!(flags & MCL_CURRENT) || (flags & ~(u64)(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)))
		return gate_host_regs(r);
	m.fd = own_open(OWN_MAPS);
	if (m.fd < 0)			/* no /proc here: all of it, the node's too */
		return gate_host_regs(r);
	if (flags & MCL_FUTURE)
		ret = host_syscall1(__NR_mlockall, flags & ~(u64)MCL_CURRENT);
	while (!ret && (line = next_line(&m, &taken)))
		ret = lock_one(line, flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0);
	host_syscall1(__NR_close, m.fd);
	if (ret)
		host_syscall0(__NR_munlockall);
	return ret;
}
