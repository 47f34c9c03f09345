// SPDX-License-Identifier: GPL-2.0
/*
 * path.c - decides which paths are the node's
 *
 * Theory of operation
 * -------------------
 * These paths belong to the node, with everything below them:
 *
 *   /proc/net  /proc/PID/net  /proc/PID/task/TID/net  /proc/PID/ns/net
 *   /proc/sys/net  /sys/class/net  /sys/devices/virtual/net  /dev/net/tun
 *   /etc/hosts  /etc/resolv.conf	where the node has its own (ring3/node/src/configure.rs)
 *   /run/netns  /var/run/netns  /sys/fs/cgroup/.../vrf  /run/cgroup2/.../vrf
 *   /proc/PID/fd/N  /proc/PID/fdinfo/N  /dev/fd/N   for node descriptors N
 *
 * PID also stands for self and thread-self. The node's tasks have the pids of their processes (kernel/task.c). For
 * a process outside of the node, pid 1 of the node answers: its network is the node's first one. The rest of the
 * path goes to the node unchanged, so that symbolic links and ".." are resolved there.
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

/* Longest name: /proc/PID/task/TID */
#define WHO_BYTES	40

/*
 * 0: not a process; 1: another one; 2: the caller's. `who` gets its directory on the node. The caller itself is
 * named by "self", since its task may not have its pid yet.
 */
static u32 whose_pid(const struct part *p, char *who)
{
	char path[32];
	s32 pid;

	if (is(p, "self") || is(p, "thread-self")) {
		gate_format(who, WHO_BYTES, "/proc/%s", p->len == 4 ? "self" : "thread-self");
		return 2;
	}
	pid = number(p);
	if (pid < 0)
		return 0;
	if (pid == host_syscall0(__NR_getpid)) {
		gate_format(who, WHO_BYTES, "/proc/self");
		return 2;
	}
	gate_format(path, sizeof(path), "/proc/%d", pid);
	if (host_syscall3(__NR_faccessat, AT_FDCWD, (long)path, 0))
		return 0;
	gate_format(who, WHO_BYTES, "/proc/%d", proc_find(pid) ? pid : 1);
	return 1;
}

/* The same for a thread: part[0] is PID, part[2] is TID. */
static bool whose_tid(const struct part *part, u32 own, char *who)
{
	s32 tid = number(&part[2]);

	if (tid < 0)
		return false;
	if (own == 2 && tid == host_syscall0(__NR_gettid))
		gate_format(who, WHO_BYTES, "/proc/thread-self");
	else if (own == 2 && !is(&part[0], "thread-self"))
		gate_format(who, WHO_BYTES, "/proc/self/task/%d", tid);
	else if (proc_find(number(&part[0])))
		gate_format(who, WHO_BYTES, "/proc/%d/task/%d", number(&part[0]), tid);
	return true;
}

/* Is part[n] the number of a node descriptor? */
static bool part_is_node_fd(const struct part *part, u32 count, u32 n)
{
	s32 fd = n < count ? number(&part[n]) : -1;

	return fd >= 0 && fd_is_node(fd);
}

/*
 * The cgroups whose sockets belong to a VRF (ip-vrf(8)) are the node's, since the BPF program attached to them is
 * about its interfaces. They are directories below one named vrf. On the node, the part of the path before that
 * tells them apart.
 */
static u32 match_vrf(const struct part *part, u32 count, u32 from, char *as, u32 size)
{
	u32 i, len;

	if (count <= from || !is(&part[count - 1], "vrf"))
		return 0;
	len = gate_format(as, size, "/run/cgroup2/");
	for (i = from; i < count; i++) {
		if (len + part[i].len + 2 > size)
			return 0;
		memcpy(as + len, part[i].s, part[i].len);
		len += part[i].len;
		as[len++] = '+';
	}
	as[len - 1] = 0;
	return count;
}

/* /etc/hosts and /etc/resolv.conf, of which a node may have its own. */
static u32 match_etc(const struct part *part, u32 count, char *as, u32 size)
{
	if (count != 2 || (!is(&part[1], "hosts") && !is(&part[1], "resolv.conf")))
		return 0;
	gate_format(as, size, "/etc/%s", is(&part[1], "hosts") ? "hosts" : "resolv.conf");
	return image_call3(__NR_faccessat, AT_FDCWD, as, 0) ? 0 : 2;
}

/* Files of /proc about the machine, in virtual time. */
static u32 match_machine(const struct part *part, u32 count, char *as, u32 size)
{
	static const char *const files[] = { "uptime", "stat", "loadavg", "meminfo", "vmstat", "interrupts", "softirqs" };
	u32 i;

	for (i = 0; count == 2 && i < ARRAY_SIZE(files); i++) {
		if (is(&part[1], files[i])) {
			gate_format(as, size, "/proc/%s", files[i]);
			return 2;
		}
	}
	if (count == 2 && ((is(&part[1], "cpuinfo") && sim_cpu_hidden()) || is(&part[1], "ring3_waits"))) {
		gate_format(as, size, "/proc/%s", is(&part[1], "cpuinfo") ? "cpuinfo" : "ring3_waits");
		return 2;
	}
	if (count == 5 && is(&part[1], "sys") && is(&part[2], "kernel") && is(&part[3], "random") &&
	    (is(&part[4], "uuid") || is(&part[4], "boot_id"))) {
		gate_format(as, size, "/proc/sys/kernel/random/%s", is(&part[4], "uuid") ? "uuid" : "boot_id");
		return 5;
	}
	return 0;
}

/* Files of /proc/PID about time and memory: the host's values would differ between two runs. */
static const char *measure(const struct part *p)
{
	return is(p, "stat") ? "stat" : is(p, "status") ? "status" : is(p, "statm") ? "statm" : NULL;
}

/* /proc/PID/... and /proc/PID/task/TID/... */
static u32 match_process(const struct part *part, u32 count, char *as, u32 size)
{
	char who[WHO_BYTES];
	u32 own = whose_pid(&part[1], who), n = 2;
	const char *folder;

	if (!own)
		return 0;
	if (count >= 5 && is(&part[2], "task")) {
		n = 4;
		if (!whose_tid(&part[1], own, who))
			return 0;
	}
	if (is(&part[n], "net")) {
		gate_format(as, size, "%s/net", who);
		return n + 1;
	}
	if (count > n + 1 && is(&part[n], "ns") && is(&part[n + 1], "net")) {
		gate_format(as, size, "%s/ns/net", who);
		return n + 2;
	}
	if (unlikely(sim_on()) && measure(&part[n])) {
		/*
		 * By its own number, whatever process it is: the node knows which processes have ended, and knows
		 * none outside.
		 */
		if (own == 1 && n == 4)
			gate_format(who, sizeof(who), "/proc/%d/task/%d", number(&part[1]), number(&part[3]));
		else if (own == 1)
			gate_format(who, sizeof(who), "/proc/%d", number(&part[1]));
		gate_format(as, size, "%s/%s", who, measure(&part[n]));
		return n + 1;
	}
	folder = is(&part[n], "fd") ? "fd" : "fdinfo";
	if (!is(&part[n], folder))
		return 0;
	if (own == 2 && part_is_node_fd(part, count, n + 1)) {
		gate_format(as, size, "/proc/self/%s/%d", folder, number(&part[n + 1]));
		return n + 2;
	}
	if (own == 1 && count > n + 1 && number(&part[n + 1]) >= 0 &&
	    proc_fd_is_node(number(&part[1]), number(&part[n + 1]))) {
		gate_format(as, size, "/proc/%d/%s/%d", number(&part[1]), folder, number(&part[n + 1]));
		return n + 2;
	}
	return 0;
}

static u32 match_proc(const struct part *part, u32 count, char *as, u32 size)
{
	u32 n;

	if (unlikely(sim_on())) {
		n = match_machine(part, count, as, size);
		if (n)
			return n;
	}
	if (is(&part[1], "net")) {
		gate_format(as, size, "/proc/net");
		return 2;
	}
	if (count < 3)
		return 0;
	if (is(&part[1], "sys")) {
		gate_format(as, size, "/proc/sys/net");
		return is(&part[2], "net") ? 3 : 0;
	}
	return match_process(part, count, as, size);
}

/* The number of CPUs, in the files that C libraries read. */
static u32 match_cpus(const struct part *part, u32 count, char *as, u32 size)
{
	static const char *const lists[] = { "online", "possible", "present" };
	u32 i;

	for (i = 0; count == 5 && i < ARRAY_SIZE(lists); i++) {
		if (is(&part[1], "devices") && is(&part[2], "system") && is(&part[3], "cpu") && is(&part[4], lists[i])) {
			gate_format(as, size, "/sys/devices/system/cpu/%s", lists[i]);
			return 5;
		}
	}
	return 0;
}

static u32 match_sys(const struct part *part, u32 count, char *as, u32 size)
{
	u32 n = unlikely(sim_on()) ? match_cpus(part, count, as, size) : 0;

	if (n)
		return n;
	if (count >= 3 && is(&part[1], "class") && is(&part[2], "net")) {
		gate_format(as, size, "/sys/class/net");
		return 3;
	}
	if (count >= 4 && is(&part[1], "devices") && is(&part[2], "virtual") && is(&part[3], "net")) {
		gate_format(as, size, "/sys/devices/virtual/net");
		return 4;
	}
	if (count > 3 && is(&part[1], "fs") && is(&part[2], "cgroup"))
		return match_vrf(part, count, 3, as, size);
	return 0;
}

static u32 match_dev(const struct part *part, u32 count, char *as, u32 size)
{
	static const char *const links[] = { "stdin", "stdout", "stderr" };	/* links of the host's /dev to /proc/self/fd/0, 1 and 2 */
	u32 i;

	if (count >= 3 && is(&part[1], "net") && is(&part[2], "tun")) {
		gate_format(as, size, "/dev/net/tun");
		return 3;
	}
	if (sim_on() && (is(&part[1], "urandom") || is(&part[1], "random"))) {
		gate_format(as, size, "/dev/urandom");
		return 2;
	}
	if (is(&part[1], "fd") && part_is_node_fd(part, count, 2)) {
		gate_format(as, size, "/proc/self/fd/%d", number(&part[2]));
		return 3;
	}
	for (i = 0; i < ARRAY_SIZE(links); i++) {
		if (is(&part[1], links[i]) && fd_is_node(i)) {
			gate_format(as, size, "/proc/self/fd/%d", i);
			return 2;
		}
	}
	return 0;
}

/* The number of parts that form a prefix of the node's (0: none). `as` gets the prefix's name on the node. */
static u32 match(const struct part *part, u32 count, char *as, u32 size)
{
	u32 n = 0;		/* parts before those in /run */

	if (count < 2)
		return 0;
	if (is(&part[0], "proc"))
		return match_proc(part, count, as, size);
	if (is(&part[0], "sys"))
		return match_sys(part, count, as, size);
	if (is(&part[0], "etc"))
		return match_etc(part, count, as, size);
	if (is(&part[0], "dev"))
		return match_dev(part, count, as, size);
	if (is(&part[0], "run"))
		n = 1;
	else if (is(&part[0], "var") && is(&part[1], "run"))	/* a link to /run */
		n = 2;
	if (!n || count <= n)
		return 0;
	if (is(&part[n], "cgroup2"))
		return match_vrf(part, count, n + 1, as, size);
	/* Names of network namespaces (ip-netns(8)). */
	if (is(&part[n], "netns")) {
		gate_format(as, size, "/run/netns");
		return n + 1;
	}
	return 0;
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
	u32 count = 0, n, len;
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
		count++;
		n = match(part, count, as, sizeof(as));
		/*
		 * match() is asked after each component. A match counts only if it covers all components so far:
		 * /proc/1/task/net would match too early otherwise.
		 */
		if (n != count)
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
	static const char * const first[] = {
		"net", "ns", "self", "thread-self", "sys", "class", "devices", "virtual",
		"tun", "task", "fd", "fdinfo", "proc", "dev", "run", "var", "netns", "..",
		"etc", "hosts", "resolv.conf", "stat", "status", "statm", "cpuinfo", "uptime", "meminfo", "loadavg", "vmstat",
		"interrupts", "softirqs", "ring3_waits", "kernel", "random", "urandom", "uuid", "boot_id", "system", "cpu", "online",
		"possible", "present",
	};
	const char *end;
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
	for (i = 0; i < ARRAY_SIZE(first); i++) {
		if (is(&p, first[i]))
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
