// SPDX-License-Identifier: GPL-2.0
/* The files of /proc/net, /proc/self/net and /proc/sys/net are this network's. */
#include "procfs.h"
#include <dirent.h>

static void writable(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0) {
		say("%s: open %s", path, ename(errno));
		return;
	}
	say("%s <- %s: %s", path, value, write(fd, value, strlen(value)) < 0 ? ename(errno) : "ok");
	close(fd);
	first_line(path);
}

int main(void)
{
	static const char * const files[] = {
		"/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/net/sockstat",
		"/proc/net/if_inet6", "/proc/net/snmp", "/proc/net/netstat", "/proc/net/udp",
		"/proc/net/packet", "/proc/net/netlink", "/proc/net/dev_mcast", "/proc/net/igmp",
		"/proc/self/net/dev", "/proc/thread-self/net/tcp", "/proc/self/net/udp6",
	};
	const char *text;
	int fd, u[2];
	char b[16];
	DIR *d;
	struct dirent *entry;
	int count = 0, has_tcp = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		text = contents(files[i]);
		say("%s: %s", files[i], *text ? strchr(text, '\n') ? "has lines" : text : "empty");
	}
	first_line("/proc/net/route");
	say("interfaces %d", lines(contents("/proc/net/dev")) - 2);
	say("%.33s", contents("/proc/net/if_inet6"));
	T(access("/proc/net/nosuch", F_OK));
	T(access("/proc/net/tcp", R_OK));
	T(access("/proc/net/tcp", W_OK | X_OK));
	T(open("/proc/net/tcp/x", O_RDONLY));
	fd = must(open("/proc/net/snmp", O_RDONLY));
	T(read(fd, b, 4));
	say("%.4s", b);
	T(lseek(fd, 0, SEEK_SET));
	T(pread(fd, b, 4, 0));
	T(read(fd, (void *)8, 4));
	T(write(fd, "x", 1));
	{
		struct stat st;

		T(fstat(fd, &st));
		say("mode %o size %ld", st.st_mode, (long)st.st_size);
		T(stat("/proc/net/tcp", &st));
		say("mode %o size %ld", st.st_mode, (long)st.st_size);
	}
	close(fd);

	/* Counters count this network's traffic. */
	udp_pair(AF_INET, u);
	for (int round = 0; round < 2; round++) {
		unsigned long in, no, err, out;
		char *line;

		text = contents("/proc/net/snmp");
		line = strstr(strstr(text, "Udp:") + 4, "Udp:");
		need(sscanf(line, "Udp: %lu %lu %lu %lu", &in, &no, &err, &out) == 4);
		say("datagrams in %lu out %lu", in, out);
		for (int i = 0; i < 7; i++)
			must(send(u[0], "x", 1, 0));
	}

	d = opendir("/proc/net");
	need(d);
	while ((entry = readdir(d))) {
		count++;
		has_tcp += !strcmp(entry->d_name, "tcp") || !strcmp(entry->d_name, "udp6");
	}
	say("many entries %d, tcp and udp6 among them %d", count > 20, has_tcp == 2);
	closedir(d);

	first_line("/proc/sys/net/ipv4/ip_forward");
	writable("/proc/sys/net/ipv4/ip_forward", "1\n");
	writable("/proc/sys/net/ipv4/tcp_congestion_control", "reno");
	writable("/proc/sys/net/ipv4/tcp_congestion_control", "nosuch");
	writable("/proc/sys/net/ipv4/ip_local_port_range", "40000 40010");
	writable("/proc/sys/net/ipv6/conf/lo/hop_limit", "33");
	writable("/proc/sys/net/core/somaxconn", "17");
	T(access("/proc/sys/net/ipv4/nosuch", F_OK));
	fd = bound(AF_INET, SOCK_DGRAM);
	say("the range counts %d", local_port(fd) >= 40000 && local_port(fd) <= 40010);
	return 0;
}
