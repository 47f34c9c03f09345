// SPDX-License-Identifier: GPL-2.0
/* TCP_CONGESTION and TCP_ULP by name. */
#include "oracle.h"

static void set(int fd, const char *name)
{
	char now[16] = "";
	socklen_t len = sizeof(now);
	int r = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name)), e = r ? errno : 0;

	must(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, now, &len));
	say("%s: %s", name, ename(e));
	if (!e)
		say("  now %s, len %d", now, len);
}

int main(void)
{
	int fd = must(socket(AF_INET, SOCK_STREAM, 0)), p[2];
	char name[16] = "", list[512] = "";
	socklen_t len = sizeof(name);
	FILE *f;

	set(fd, "reno");
	set(fd, "cubic");
	set(fd, "bbr");
	set(fd, "nosuchthing");
	set(fd, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	T(setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "", 0));
	f = fopen("/proc/sys/net/ipv4/tcp_available_congestion_control", "r");
	need(f && fgets(list, sizeof(list), f));
	say("available: reno %d cubic %d bbr %d", !!strstr(list, "reno"), !!strstr(list, "cubic"),
	    !!strstr(list, "bbr"));
	len = 3;
	T(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
	N(len);
	T(getsockopt(fd, IPPROTO_TCP, TCP_ULP, name, &len));
	N(len);
	T(setsockopt(fd, IPPROTO_TCP, TCP_ULP, "nosuch", 6));
	tcp_pair(AF_INET, p);
	T(setsockopt(p[0], IPPROTO_TCP, TCP_CONGESTION, "reno", 4));
	T(write(p[0], "abc", 3));
	T(read(p[1], name, 3));
	return 0;
}
