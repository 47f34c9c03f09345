// SPDX-License-Identifier: GPL-2.0
/*
 * path.c - decides which paths are the node's
 *
 * Theory of operation
 * -------------------
 * A path belongs to the node if it begins with a place of the table places[], or leads to the cgroup of a VRF. The rest of it
 * goes to the node unchanged, so that symbolic links and ".." are resolved there.
 *
 * The node's tasks have the pids of their processes (kernel/task.c). For a process outside of the node, pid 1 of the node
 * answers: its network is the node's first one.
 *
 * A path is made absolute, and its "." and ".." are resolved by name, as if no symbolic link preceded the prefix. A
 * relative path is examined only if the working directory (or the directory descriptor) is in /proc, /sys, /dev,
 * /etc, /run or /var; the gate checks that once for each change of the working directory. Other links that lead
 * into these places (say /tmp/x -> /proc/net/tcp) are the host's.
 */
#include "policy.h"

#define PARTS	12	/* of a prefix */

static struct {
	u64 proc;		/* the process whose working directory this describes */
	u32 known;		/* 1: nothing of the node is below it; 2: something may be */
} cwd;

struct part {
	const char *s;
	u32 len;
};

static bool is(const struct part *p, const char *name)
{
	return strlen(name) == p->len && !memcmp(p->s, name, p->len);
}

/* A decimal number below 2^31, or -1. */
static s32 number(const struct part *p)
{
	u64 n = 0;
	u32 i;

	if (!p->len || p->len > 9)
		return -1;
	for (i = 0; i < p->len; i++) {
		if (p->s[i] < '0' || p->s[i] > '9')
			return -1;
		n = n * 10 + (p->s[i] - '0');
	}
	return n;
}

/*
 * The node's paths. P stands for a process (PID, self, thread-self) or a thread (PID/task/TID), N for the number of a node
 * descriptor. Not in the table: cgroups, see match_vrf().
 */
static const struct place {
	const char *path;
	enum {
		ALWAYS,
		IF_THERE,	/* the node has a file of its own there */
		VIRTUAL,	/* in virtual time: the host's values would differ between two runs */
		VIRTUAL_CPU,	/* in virtual time, where the processor is hidden */
		STDIO,		/* STDIO + n: descriptor n is the node's */
	} when;
	const char *as;		/* its name on the node if that is another one; the number N follows */
} places[] = {
	{ .path = "proc/net" }, { .path = "proc/sys/net" }, { .path = "proc/P/net" }, { .path = "proc/P/ns/net" },
	{ .path = "proc/P/fd/N" }, { .path = "proc/P/fdinfo/N" }, { .path = "sys/class/net" },
	{ .path = "sys/devices/virtual/net" }, { .path = "sys/fs/bpf" }, { .path = "run/netns" }, { "etc/hosts", IF_THERE, "/etc/hosts" },
	{ "etc/resolv.conf", IF_THERE, "/etc/resolv.conf" }, { .path = "dev/net/tun" },
	{ "dev/fd/N", ALWAYS, "/proc/self/fd" },
	/* links of the host's /dev */
	{ "dev/stdin", STDIO, "/proc/self/fd/0" }, { "dev/stdout", STDIO + 1, "/proc/self/fd/1" },
	{ "dev/stderr", STDIO + 2, "/proc/self/fd/2" },

	{ .path = "proc/P/stat", .when = VIRTUAL }, { .path = "proc/P/status", .when = VIRTUAL },
	{ .path = "proc/P/statm", .when = VIRTUAL }, { .path = "proc/uptime", .when = VIRTUAL },
	{ .path = "proc/stat", .when = VIRTUAL }, { .path = "proc/loadavg", .when = VIRTUAL },
	{ .path = "proc/meminfo", .when = VIRTUAL }, { .path = "proc/vmstat", .when = VIRTUAL },
	{ .path = "proc/interrupts", .when = VIRTUAL }, { .path = "proc/softirqs", .when = VIRTUAL },
	{ .path = "proc/ring3_waits", .when = VIRTUAL }, { .path = "proc/ring3_preempted", .when = VIRTUAL },
	{ .path = "proc/cpuinfo", .when = VIRTUAL_CPU },
	{ .path = "proc/sys/kernel/random/uuid", .when = VIRTUAL },
	{ .path = "proc/sys/kernel/random/boot_id", .when = VIRTUAL },
	{ .path = "sys/devices/system/cpu/online", .when = VIRTUAL },
	{ .path = "sys/devices/system/cpu/possible", .when = VIRTUAL },
	{ .path = "sys/devices/system/cpu/present", .when = VIRTUAL }, { .path = "dev/urandom", .when = VIRTUAL },
	{ "dev/random", VIRTUAL, "/dev/urandom" },
};

/* Indices of the components that stand for P, for its TID and for N; 0: there is none. */
struct variable {
	u32 process, thread, fd;
};

static bool fits(const char *pattern, const struct part *part, u32 count, struct variable *at)
{
	const char *end;
	u32 i, len;

	*at = (struct variable){ 0 };
	for (i = 0; i < count; i++, pattern = end + 1) {
		end = strchr(pattern, '/');
		len = end ? (u32)(end - pattern) : strlen(pattern);
		if (*pattern == 'P') {
			at->process = i;
			if (i + 2 < count && is(&part[i + 1], "task"))
				at->thread = i += 2;
		} else if (*pattern == 'N') {
			at->fd = i;
		} else if (len != part[i].len || memcmp(pattern, part[i].s, len)) {
			return false;
		}
		if (!end)
			return i + 1 == count;
	}
	return false;
}

#define WHO_BYTES	32	/* PID/task/TID */

enum whose { NOBODY, ANOTHER, OWN };

/*
 * Says whether the process is the caller's; `who` gets its directory in the node's /proc. The caller itself is named by
 * "self", since its task may not have its pid yet; a process outside of the node by 1, or if `as_given` is set by its number. tid: NULL, or
 * that of a thread.
 */
static enum whose whose_process(const struct part *process, const struct part *thread, bool as_given, char *who)
{
	bool self = is(process, "self"), thread_self = is(process, "thread-self");
	s32 pid = number(process), tid = thread ? number(thread) : 0;
	char path[32];

	if (tid < 0)
		return NOBODY;
	if (self || thread_self || (pid >= 0 && pid == host_syscall0(__NR_getpid))) {
		if (thread_self || (thread && tid == host_syscall0(__NR_gettid)))
			gate_format(who, WHO_BYTES, "thread-self");
		else
			gate_format(who, WHO_BYTES, thread ? "self/task/%d" : "self", tid);
		return OWN;
	}
	gate_format(path, sizeof(path), "/proc/%d", pid);
	if (pid < 0 || host_syscall3(__NR_faccessat, AT_FDCWD, (long)path, 0))
		return NOBODY;
	if (!as_given && !proc_find(pid))
		gate_format(who, WHO_BYTES, "1");
	else
		gate_format(who, WHO_BYTES, thread ? "%d/task/%d" : "%d", pid, tid);
	return ANOTHER;
}

static bool applies(const struct place *place)
{
	switch (place->when) {
	case ALWAYS:
		return true;
	case IF_THERE:
		return !image_call3(__NR_faccessat, AT_FDCWD, place->as, 0);
	case VIRTUAL:
		return sim_on();
	case VIRTUAL_CPU:
		return sim_on() && sim_cpu_hidden();
	default:
		return fd_is_node(place->when - STDIO);
	}
}

static u32 put(char *as, u32 len, const char *s, u32 n)
{
	as[len] = '/';
	memcpy(as + len + 1, s, n);
	return len + 1 + n;
}

/* Are the components this place? Then `as` gets its name on the node. Threads share their process's descriptors. */
static bool is_place(const struct place *place, const struct part *part, u32 count, char *as)
{
	enum whose whose = OWN;
	char who[WHO_BYTES];
	struct variable at;
	u32 i, len = 0;
	s32 fd;

	if (!fits(place->path, part, count, &at) || !applies(place))
		return false;
	if (at.process)
		whose = whose_process(&part[at.process], at.thread && !at.fd ? &part[at.thread] : NULL,
				      at.fd || place->when != ALWAYS, who);
	fd = at.fd ? number(&part[at.fd]) : 0;
	if (whose == NOBODY || fd < 0 || (at.thread && number(&part[at.thread]) < 0) ||
	    (at.fd && !(whose == OWN ? fd_is_node(fd) : proc_fd_is_node(number(&part[at.process]), fd))))
		return false;
	if (place->as)
		len = put(as, 0, place->as + 1, strlen(place->as) - 1);
	for (i = place->as ? count - !!at.fd : 0; i < count; i++) {
		if (i && i == at.process) {
			len = put(as, len, who, strlen(who));
			i += at.thread ? 2 : 0;
		} else {
			len = put(as, len, part[i].s, part[i].len);
		}
	}
	as[len] = 0;
	return true;
}

/*
 * The cgroups whose sockets belong to a VRF (ip-vrf(8)) are the node's, since the BPF program attached to them is
 * about its interfaces. They are directories below one named vrf. On the node, the part of the path before that
 * tells them apart.
 */
static bool match_vrf(const struct part *part, u32 count, u32 from, char *as, u32 size)
{
	u32 i, len;

	if (count <= from || !is(&part[count - 1], "vrf"))
		return false;
	len = gate_format(as, size, "/run/cgroup2/");
	for (i = from; i < count; i++) {
		if (len + part[i].len + 2 > size)
			return false;
		memcpy(as + len, part[i].s, part[i].len);
		len += part[i].len;
		as[len++] = '+';
	}
	as[len - 1] = 0;
	return true;
}

static bool match(const struct part *part, u32 count, char *as, u32 size)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		if (is_place(&places[i], part, count, as))
			return true;
	if (count > 3 && is(&part[0], "sys") && is(&part[1], "fs") && is(&part[2], "cgroup"))
		return match_vrf(part, count, 3, as, size);
	return count > 2 && is(&part[0], "run") && is(&part[1], "cgroup2") && match_vrf(part, count, 2, as, size);
}

/* Rejects most paths quickly: the node's start with /proc, /sys, /dev, /etc, /run or /var/run. */
static bool worth_a_look(const char *s)
{
	const char *p;

	while (s[0] == '/' || (s[0] == '.' && s[1] == '/'))
		s++;
	if (!strncmp(s, "proc", 4) || !strncmp(s, "sys", 3) || !strncmp(s, "dev", 3) ||
	    !strncmp(s, "etc/hosts", 9) || !strncmp(s, "etc/resolv.conf", 15) ||
	    !strncmp(s, "run/netns", 9) || !strncmp(s, "var/run/netns", 13) ||
	    !strncmp(s, "run/cgroup2/", 12) || !strncmp(s, "var/run/cgroup2/", 16))
		return true;
	for (p = s; *p; p++) {
		if (p[0] == '.' && p[1] == '.' && (p == s || p[-1] == '/'))
			return true;
	}
	return false;
}

/*
 * Examines the absolute path `s`. True: it is the node's, and buf (PATH_BUF) has its name there. s and buf must not
 * overlap.
 */
static bool absolute_is_node(const char *s, char *buf)
{
	struct part part[PARTS];
	u32 count = 0, len;
	char as[160];

	if (!worth_a_look(s))
		return false;
	while (*s) {
		while (*s == '/')
			s++;
		if (!*s)
			break;
		if (count == PARTS)
			return false;
		part[count].s = s;
		while (*s && *s != '/')
			s++;
		part[count].len = s - part[count].s;
		if (is(&part[count], "."))
			continue;
		if (is(&part[count], "..")) {
			count -= !!count;
			continue;
		}
		if (count == 1 && is(&part[0], "var") && is(&part[1], "run"))	/* a link to /run */
			part[0] = part[1];
		else
			count++;
		if (!match(part, count, as, sizeof(as)))
			continue;
		len = strlen(as);
		if (len + strlen(s) >= PATH_BUF)
			return false;
		memcpy(buf, as, len);
		memcpy(buf + len, s, strlen(s) + 1);
		return true;
	}
	return false;
}

static long cwd_of(s32 dirfd, char *buf, u32 size)
{
	if (dirfd == AT_FDCWD)
		return host_syscall2(__NR_getcwd, (long)buf, size) > 0 ? 0 : -ENOENT;
	return fd_link(dirfd, buf, size) > 0 && buf[0] == '/' ? 0 : -ENOENT;
}

static bool dir_is_near(const char *dir)
{
	return !dir[1] || !strncmp(dir, "/proc", 5) || !strncmp(dir, "/sys", 4) ||
	       !strncmp(dir, "/dev", 4) || !strncmp(dir, "/etc", 4) || !strncmp(dir, "/run", 4) || !strncmp(dir, "/var", 4);
}

/* Could this relative path lead to a path of the node? Does not look at the directory. */
static bool relative_is_possible(const char *s)
{
	static const char *const others[] = { "..", "self", "thread-self", "task", "var" };
	const char *end, *at;
	struct part p;
	u32 i;

	while (s[0] == '.' && s[1] == '/') {
		while (*++s == '/')
			;
	}
	p.s = s;
	end = strchr(s, '/');
	p.len = end ? (u32)(end - s) : strlen(s);
	if (number(&p) >= 0)
		return true;
	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (is(&p, others[i]))
			return true;
	for (i = 0; i < ARRAY_SIZE(places); i++)
		for (at = places[i].path; at; at = end ? end + 1 : NULL) {
			end = strchr(at, '/');
			if (!strncmp(at, p.s, p.len) && (at[p.len] == '/' || !at[p.len]))
				return true;
		}
	return false;
}

static bool relative_is_node(s32 dirfd, const char *s, char *buf)
{
	u64 proc = gate_thread()->proc;
	char full[PATH_BUF];
	u32 len;

	if (dirfd == AT_FDCWD && cwd.proc == proc && cwd.known == 1 && strncmp(s, "..", 2))
		return false;
	if (dirfd != AT_FDCWD && !relative_is_possible(s))
		return false;
	if (cwd_of(dirfd, full, sizeof(full)))
		return false;
	if (dirfd == AT_FDCWD) {
		cwd.known = dir_is_near(full) ? 2 : 1;
		cwd.proc = proc;
	}
	if (!dir_is_near(full) && strncmp(s, "..", 2))
		return false;
	len = strlen(full);
	if (len + 1 + strlen(s) >= sizeof(full))
		return false;
	full[len++] = '/';
	memcpy(full + len, s, strlen(s) + 1);
	return absolute_is_node(full, buf);
}

enum path_owner path_owner(s32 dirfd, u64 user_path, char *buf)
{
	char s[PATH_BUF];
	long len;

	len = gate_strncpy_in(s, user_ptr(user_path), sizeof(s));
	if (len < 0)		/* the host fails as well, or the path is too long to be the node's */
		return PATH_HOST;
	if (s[0] == '/')
		return absolute_is_node(s, buf) ? PATH_NODE : PATH_HOST;
	if (dirfd != AT_FDCWD && fd_is_node(dirfd))
		return PATH_NODE_RELATIVE;
	if (!len)
		return PATH_HOST;
	return relative_is_node(dirfd, s, buf) ? PATH_NODE : PATH_HOST;
}

bool path_is_near(s32 dirfd, u64 user_path)
{
	char s[PATH_BUF];

	if (gate_strncpy_in(s, user_ptr(user_path), sizeof(s)) < 0)
		return false;
	if (s[0] == '/' || !strncmp(s, "..", 2))
		return worth_a_look(s);
	return dirfd != AT_FDCWD || cwd.proc != gate_thread()->proc || cwd.known != 1;
}

void path_cwd_changed(void)
{
	cwd.known = 0;
}
