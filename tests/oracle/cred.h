/* SPDX-License-Identifier: GPL-2.0 */
/* What a program may do with its network: tried by what Linux asks a right for. */
#ifndef CRED_H
#define CRED_H

#include "oracle.h"
#include <grp.h>
#include <linux/capability.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

#define NOBODY	65534
#define SOMEBODY	1234

/* Only root may become somebody else; alone in a user namespace it has nobody to become. */
static void need_root(void)
{
	if (setgroups(0, NULL))
		skip("takes an account that may change its groups");
}

static const char *tried(long ret)
{
	return ename(ret < 0 ? errno : 0);
}

static long low_port(int family, int port)
{
	union address a = loopback(family, port);
	int fd = must(socket(family, SOCK_STREAM, 0));
	long ret;

	if (family == AF_INET)
		a.in.sin_addr.s_addr = INADDR_ANY;
	ret = bind(fd, &a.sa, sizeof(a.in));
	close(fd);
	return ret;
}

static long opened(int family, int type, int protocol)
{
	long fd = socket(family, type, protocol);

	if (fd >= 0)
		close(fd);
	return fd;
}

static long link_up(int fd)
{
	struct ifreq r = { .ifr_name = "lo" };

	return ioctl(fd, SIOCGIFFLAGS, &r) ?: (r.ifr_flags |= IFF_UP, ioctl(fd, SIOCSIFFLAGS, &r));
}

static long sysctl_write(void)
{
	int fd = open("/proc/sys/net/ipv4/ip_default_ttl", O_WRONLY);

	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* One line: what goes and what does not. */
static void rights(const char *when)
{
	int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

	printf("%s:", when);
	printf(" port 81 %s,", tried(low_port(AF_INET, 81)));
	printf(" mark %s,", tried(set_int(fd, SOL_SOCKET, SO_MARK, 1)));
	printf(" priority 6 %s,", tried(set_int(fd, SOL_SOCKET, SO_PRIORITY, 6)));
	printf(" priority 7 %s,", tried(set_int(fd, SOL_SOCKET, SO_PRIORITY, 7)));
	printf(" transparent %s,", tried(set_int(fd, SOL_IP, IP_TRANSPARENT, 1)));
	printf(" raw %s,", tried(opened(AF_INET, SOCK_RAW, IPPROTO_ICMP)));
	printf(" packet %s,", tried(opened(AF_PACKET, SOCK_RAW, 0)));
	printf(" link up %s,", tried(link_up(fd)));
	printf(" sysctl %s\n", tried(sysctl_write()));
	close(fd);
}

static int caps_set(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++) {
		data[i].permitted = permitted >> (32 * i);
		data[i].effective = effective >> (32 * i);
		data[i].inheritable = inheritable >> (32 * i);
	}
	return syscall(SYS_capset, &head, data);
}

static uint64_t caps_permitted(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	must(syscall(SYS_capget, &head, data));
	return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

#define CAP(name) (1ull << (CAP_##name))

/* Runs a part of a program in a child, so that the next one begins with all rights. */
#define IN_CHILD(part) do {						\
	int in_status = 0;						\
	pid_t in_pid;							\
									\
	fflush(stdout);							\
	in_pid = must(fork());						\
	if (!in_pid) {							\
		part;							\
		exit(0);						\
	}								\
	must(waitpid(in_pid, &in_status, 0));				\
	if (in_status)							\
		printf("%s ended with 0x%x\n", #part, in_status);	\
} while (0)

#endif
