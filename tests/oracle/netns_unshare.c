// SPDX-License-Identifier: GPL-2.0
/* unshare(CLONE_NEWNET) and setns(): which state belongs to the other network namespace and which does not. */
#include "rtnl.h"
#include <linux/nsfs.h>
#include <linux/sockios.h>
#include <sys/syscall.h>

static int read_number(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = -1;

	if (!f)
		return -errno;
	if (fscanf(f, "%d", &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

static void write_text(const char *path, const char *text)
{
	int fd = must(open(path, O_WRONLY));

	must(write(fd, text, strlen(text)));
	close(fd);
}

int main(void)
{
	int old = own_netns(), new, l, c, type;
	union address a;
	char link1[64] = "", link2[64] = "";

	say("links: %s", links());
	l = listener(AF_INET, 1);
	a = loopback(AF_INET, local_port(l));
	write_text("/proc/sys/net/ipv4/ip_default_ttl", "99");
	must(readlink("/proc/self/ns/net", link1, sizeof(link1) - 1));
	say("net:[: %d", !strncmp(link1, "net:[", 5));

	T(unshare(CLONE_NEWNET));
	new = own_netns();
	say("same %d", same_netns(old, new));
	must(readlink("/proc/self/ns/net", link2, sizeof(link2) - 1));
	say("links differ %d", strcmp(link1, link2) != 0);
	N(ioctl(new, NS_GET_NSTYPE) == CLONE_NEWNET);
	say("links: %s", links());
	N(read_number("/proc/sys/net/ipv4/ip_default_ttl"));
	N(if_nametoindex("lo"));

	/* lo is down here: nothing is reachable, not even oneself. */
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(c, &a.sa, sizeof(a.in)));
	close(c);
	T(rtnl_up("lo", NULL));
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(connect(c, &a.sa, sizeof(a.in)));
	close(c);

	/* The same address and port once more. */
	c = must(socket(AF_INET, SOCK_STREAM, 0));
	T(bind(c, &a.sa, sizeof(a.in)));
	T(listen(c, 1));

	/* A socket stays where it was made. */
	T(setns(old, CLONE_NEWNET));
	new = own_netns();
	say("same %d", same_netns(old, new));
	N(read_number("/proc/sys/net/ipv4/ip_default_ttl"));
	{
		int d = must(socket(AF_INET, SOCK_STREAM, 0));

		T(connect(d, &a.sa, sizeof(a.in)));
		N(wait_for(l, POLLIN));
		N(poll(&(struct pollfd){ .fd = c, .events = POLLIN }, 1, 50));
		type = must(ioctl(c, SIOCGSKNS));
		say("socket's own %d", same_netns(type, old));
		T(setns(type, 0));
		N(read_number("/proc/sys/net/ipv4/ip_default_ttl") == 99);
	}

	/* By a pidfd: one's own network, so nothing changes. */
	T(unshare(CLONE_NEWNET));
	{
		int self = must(syscall(SYS_pidfd_open, getpid(), 0)), now;

		T(setns(self, CLONE_NEWNET));
		now = own_netns();
		say("same as before unshare %d", same_netns(now, old));
		T(setns(self, 0));
		T(setns(self, CLONE_NEWNET | CLONE_NEWUTS));
	}

	/* Refused calls. */
	T(setns(0, CLONE_NEWNET));
	T(setns(-1, CLONE_NEWNET));
	T(setns(old, CLONE_NEWUTS));
	T(setns(c, 0));
	T(unshare(CLONE_NEWNET | 1));
	return 0;
}
