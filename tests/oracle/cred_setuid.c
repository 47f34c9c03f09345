// SPDX-License-Identifier: GPL-2.0
/* A program that becomes an ordinary user has an ordinary user's rights over the network. */
#include "cred.h"

static void for_good(void)
{
	int raw = must(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));

	must(setgid(NOBODY));
	must(setuid(NOBODY));
	rights("setuid");
	T(setuid(0));
	T(set_int(raw, SOL_IP, IP_HDRINCL, 1));	/* what was opened before stays open */
	IN_CHILD(rights("child"));
}

static void for_now(void)
{
	must(seteuid(NOBODY));
	rights("seteuid");
	must(seteuid(0));
	rights("seteuid back");
	must(setfsuid(NOBODY) == 0 ? 0 : -1);
	rights("setfsuid");
	must(setresuid(NOBODY, -1, NOBODY));
	rights("setresuid of two");
	must(setreuid(-1, NOBODY));
	rights("setreuid of the last");
	T(seteuid(0));
}

static void kept(void)
{
	must(prctl(PR_SET_KEEPCAPS, 1));
	must(setresuid(NOBODY, NOBODY, NOBODY));
	rights("kept, not in effect");
	must(caps_set(CAP(NET_RAW) | CAP(NET_BIND_SERVICE), CAP(NET_BIND_SERVICE), 0));
	rights("kept, one in effect");
	must(caps_set(CAP(NET_RAW), CAP(NET_RAW), 0));
	rights("kept, another");
}

/* Sockets for echo requests are for the groups that the sysctl names. */
static void groups(void)
{
	int fd = must(open("/proc/sys/net/ipv4/ping_group_range", O_WRONLY));
	gid_t one = 77;

	must(write(fd, "77 77", 5));
	close(fd);
	must(setgid(NOBODY));
	OK(opened(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	must(setgroups(1, &one));
	OK(opened(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	must(setgroups(0, NULL));
	must(setegid(77));
	OK(opened(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
	must(setuid(NOBODY));
	OK(opened(AF_INET, SOCK_DGRAM, IPPROTO_ICMP));
}

/* A port is shared by sockets of one user. */
static int shared(uid_t uid, int port)
{
	union address a = loopback(AF_INET, port);
	int fd = must(socket(AF_INET, SOCK_STREAM, 0));

	must(seteuid(uid));
	close(fd);
	fd = must(socket(AF_INET, SOCK_STREAM, 0));
	must(set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1));
	printf("port of user %d: %s\n", (int)uid, tried(bind(fd, &a.sa, sizeof(a.in))));
	must(listen(fd, 1));
	must(seteuid(0));
	return fd;
}

/* In the table's order there is chance. */
static void owner_of(unsigned int port)
{
	unsigned int its, uid;
	char line[256];
	FILE *f = fopen("/proc/net/tcp", "r");

	need(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*d: %*8x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %u", &its, &uid) == 2 &&
		    its == port)
			printf("/proc/net/tcp: %u is of %u\n", port, uid);
	fclose(f);
}

static void owners(void)
{
	shared(SOMEBODY, 7700);
	shared(SOMEBODY, 7700);
	shared(NOBODY, 7700);
	shared(NOBODY, 7701);
	owner_of(7700);
	owner_of(7701);
}

int main(void)
{
	need_root();
	rights("root");
	IN_CHILD(for_good());
	IN_CHILD(for_now());
	IN_CHILD(kept());
	IN_CHILD(groups());
	IN_CHILD(owners());
	rights("root still");
	return 0;
}
