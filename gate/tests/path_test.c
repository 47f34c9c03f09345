// SPDX-License-Identifier: GPL-2.0
/*
 * path_test.c - which paths path.c takes for the network's
 *
 * Runs on the host, without a node: descriptor 7 is the node's, and so is our
 * parent's, which is a process of the node's; everything else is the host's. Exits 0 when all
 * answers are right.
 */
#include "../path/path.c"
#include "../base/string.c"


static struct ring3_fdmap map;
static struct ring3_thread thread = { .fdmap = (u64)&map, .proc = 1 };

long gate_strncpy_in(char *dst, const void *user, size_t size)
{
	size_t n = strnlen(user, size);

	if (n == size)
		return -ENAMETOOLONG;
	memcpy(dst, user, n + 1);
	return n;
}

u32 gate_fd_base = 1024;

static void say(const char *line)
{
	host_syscall3(__NR_write, 1, (long)line, strlen(line));
}

static bool parent_is_stranger;

struct ring3_proc *proc_find(s32 pid)
{
	static struct ring3_proc parent;

	return pid == host_syscall0(__NR_getppid) && !parent_is_stranger ? &parent : NULL;
}

long fd_link(int fd, char *text, size_t size)
{
	char path[32];
	long n;

	gate_format(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = host_syscall4(__NR_readlinkat, AT_FDCWD, (long)path, (long)text, size - 1);
	text[n < 0 ? 0 : n] = 0;
	return n;
}

/* The node has no /etc/hosts of its own. */
long image_call(long nr, long a, long b, long c, long d, long e, long f)
{
	(void)nr, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
	return -ENOENT;
}

static bool virtual;

bool sim_on(void)
{
	return virtual;
}

bool sim_cpu_hidden(void)
{
	return false;
}

bool proc_fd_is_node(s32 pid, s32 fd)
{
	return proc_find(pid) && fd == 7;
}

static int failed;

/* `want`: the node's name of it, or NULL: the host's. */
static void expect(int dirfd, const char *path, const char *want)
{
	char buf[PATH_BUF] = "";
	enum path_owner owner = path_owner(dirfd, (u64)path, buf);

	if (want ? owner != PATH_NODE || strcmp(buf, want) : owner != PATH_HOST) {
		char line[3 * PATH_BUF];

		gate_format(line, sizeof(line), "%d %s: %s %s, want %s\n", dirfd, path,
			    owner == PATH_HOST ? "host" : "node", buf, want ? want : "host");
		say(line);
		failed = 1;
	}
}

static void number_of(char path[64], const char *format, long call)
{
	char text[64];
	const char *number = strchr(format, '%');
	u32 before = number - format;

	memcpy(text, format, before);
	text[before] = 0;
	gate_format(path, 64, "%s%ld%s", text, host_syscall0(call), number + 2);
}

int main(void)
{
	char own[64];
	int dir;

	host_syscall2(__NR_arch_prctl, ARCH_SET_GS, (long)&thread);
	thread.self = (u64)&thread;
	map_set(map.node, 7);

	expect(AT_FDCWD, "/etc/hosts", NULL);
	expect(AT_FDCWD, "/proc/cpuinfo", NULL);
	expect(AT_FDCWD, "/proc/netfoo", NULL);
	expect(AT_FDCWD, "/proc", NULL);
	expect(AT_FDCWD, "/proc/sys/kernel/hostname", NULL);
	expect(AT_FDCWD, "/sys/class/block", NULL);
	expect(AT_FDCWD, "/dev/net", NULL);
	expect(AT_FDCWD, "/proc/net", "/proc/net");
	expect(AT_FDCWD, "/proc/net/tcp", "/proc/net/tcp");
	expect(AT_FDCWD, "//proc/./net//dev", "/proc/net//dev");
	expect(AT_FDCWD, "/etc/../proc/net/dev", "/proc/net/dev");
	expect(AT_FDCWD, "/proc/self/net/dev", "/proc/self/net/dev");
	expect(AT_FDCWD, "/proc/thread-self/net/dev", "/proc/thread-self/net/dev");
	expect(AT_FDCWD, "/proc/1/net/dev", "/proc/1/net/dev");
	parent_is_stranger = true;
	number_of(own, "/proc/%d/net/dev", __NR_getppid);
	expect(AT_FDCWD, own, "/proc/1/net/dev");
	parent_is_stranger = false;
	expect(AT_FDCWD, "/proc/1/task/1/net/dev", "/proc/1/net/dev");
	expect(AT_FDCWD, "/proc/self/task/7/net/dev", "/proc/self/task/7/net/dev");
	number_of(own, "/proc/%d/ns/net", __NR_getpid);
	expect(AT_FDCWD, own, "/proc/self/ns/net");
	number_of(own, "/proc/self/task/%d/ns/net", __NR_gettid);
	expect(AT_FDCWD, own, "/proc/thread-self/ns/net");
	number_of(own, "/proc/%d/ns/net", __NR_getppid);
	expect(AT_FDCWD, own, own);
	number_of(own, "/proc/%d/task/7/ns/net", __NR_getppid);
	expect(AT_FDCWD, own, own);
	number_of(own, "/proc/%d/fd/7", __NR_getppid);
	expect(AT_FDCWD, own, own);
	expect(AT_FDCWD, "/proc/999999999/net/dev", NULL);
	expect(AT_FDCWD, "/proc/self/ns/net", "/proc/self/ns/net");
	expect(AT_FDCWD, "/proc/self/ns/mnt", NULL);
	expect(AT_FDCWD, "/run", NULL);
	expect(AT_FDCWD, "/run/netnsfoo", NULL);
	expect(AT_FDCWD, "/sys/fs/cgroup/unified/vrf/red/cgroup.procs",
	       "/run/cgroup2/unified+vrf/red/cgroup.procs");
	expect(AT_FDCWD, "/sys/fs/cgroup/vrf", "/run/cgroup2/vrf");
	expect(AT_FDCWD, "/var/run/cgroup2/blue/vrf/red", "/run/cgroup2/blue+vrf/red");
	expect(AT_FDCWD, "/sys/fs/cgroup/unified/red/cgroup.procs", NULL);
	expect(AT_FDCWD, "/run/cgroup2/red", NULL);
	expect(AT_FDCWD, "/run/netns", "/run/netns");
	expect(AT_FDCWD, "/var/run/netns/blue", "/run/netns/blue");
	expect(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/ip_forward");
	expect(AT_FDCWD, "/sys/class/net/eth0/../lo", "/sys/class/net/eth0/../lo");
	expect(AT_FDCWD, "/sys/devices/virtual/net/lo/mtu", "/sys/devices/virtual/net/lo/mtu");
	expect(AT_FDCWD, "/sys/fs/bpf/xdp/globals", "/sys/fs/bpf/xdp/globals");
	expect(AT_FDCWD, "/sys/fs/bpf2", NULL);
	expect(AT_FDCWD, "/dev/net/tun", "/dev/net/tun");
	expect(AT_FDCWD, "/proc/self/fd/7", "/proc/self/fd/7");
	expect(AT_FDCWD, "/dev/fd/7", "/proc/self/fd/7");
	expect(AT_FDCWD, "/proc/self/fd/6", NULL);
	gate_format(own, sizeof(own), "/proc/%d/fd/7", (int)host_syscall0(__NR_getpid));
	expect(AT_FDCWD, own, "/proc/self/fd/7");
	expect(AT_FDCWD, "/proc/1/fd/7", NULL);
	expect(AT_FDCWD, "/proc/1/task/x/net", NULL);
	expect(AT_FDCWD, "/proc/self/task/7/fdinfo/7", "/proc/self/fdinfo/7");
	expect(AT_FDCWD, "/dev/stdin", NULL);
	map_set(map.node, 0);
	expect(AT_FDCWD, "/dev/stdin", "/proc/self/fd/0");
	map_clear(map.node, 0);

	virtual = true;
	expect(AT_FDCWD, "/proc/uptime", "/proc/uptime");
	expect(AT_FDCWD, "/proc/self/status", "/proc/self/status");
	expect(AT_FDCWD, "/proc/1/task/1/stat", "/proc/1/task/1/stat");
	expect(AT_FDCWD, "/dev/random", "/dev/urandom");
	expect(AT_FDCWD, "/sys/devices/system/cpu/online", "/sys/devices/system/cpu/online");
	expect(AT_FDCWD, "/proc/cpuinfo", NULL);
	virtual = false;
	expect(AT_FDCWD, "/proc/self/status", NULL);

	if (host_syscall1(__NR_chdir, (long)"/proc"))
		return 1;
	cwd.known = 0;
	expect(AT_FDCWD, "net/dev", "/proc/net/dev");
	expect(AT_FDCWD, "sys/net/core", "/proc/sys/net/core");
	expect(AT_FDCWD, "cpuinfo", NULL);
	if (host_syscall1(__NR_chdir, (long)"/usr/lib"))
		return 1;
	cwd.known = 0;
	expect(AT_FDCWD, "net/dev", NULL);
	expect(AT_FDCWD, "../../proc/net/dev", "/proc/net/dev");
	dir = host_syscall3(__NR_openat, AT_FDCWD, (long)"/proc/self", O_RDONLY);
	expect(dir, "cmdline", NULL);
	expect(dir, "net/dev", "/proc/self/net/dev");
	if (!failed)
		say("ok    path_test\n");
	return failed;
}
