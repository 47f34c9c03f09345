/* SPDX-License-Identifier: GPL-2.0 */
/* rtnl.h - links and addresses by rtnetlink, for tests of more than one network namespace */
#ifndef RTNL_H
#define RTNL_H

#include "oracle.h"
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>

struct rtnl {
	struct nlmsghdr h;
	char payload[512];
};

static inline struct rtattr *rtnl_end(struct rtnl *r)
{
	return (struct rtattr *)((char *)r + NLMSG_ALIGN(r->h.nlmsg_len));
}

static inline struct rtattr *rtnl_put(struct rtnl *r, int type, const void *value, int len)
{
	struct rtattr *a = rtnl_end(r);

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), value, len);
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
	return a;
}

static inline void rtnl_close(struct rtnl *r, struct rtattr *nest)
{
	nest->rta_len = (char *)rtnl_end(r) - (char *)nest;
}

static inline void rtnl_start(struct rtnl *r, int type, int flags, const void *body, int len)
{
	memset(r, 0, sizeof(*r));
	r->h.nlmsg_type = type;
	r->h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	r->h.nlmsg_len = NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(&r->h), body, len);
}

/* Sends in the caller's namespace; 0, or -1 with errno. */
static inline int rtnl_talk(struct rtnl *r)
{
	char buf[8192];
	int fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	struct nlmsghdr *h = (struct nlmsghdr *)buf;

	must(send(fd, r, r->h.nlmsg_len, 0));
	must(recv(fd, buf, sizeof(buf), 0));
	close(fd);
	need(h->nlmsg_type == NLMSG_ERROR);
	errno = -((struct nlmsgerr *)NLMSG_DATA(h))->error;
	return errno ? -1 : 0;
}

/* A veth pair; attr is IFLA_NET_NS_FD or IFLA_NET_NS_PID, or 0 when the peer stays here. */
static inline int rtnl_veth(const char *name, const char *peer, int attr, unsigned int ns)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC };
	struct rtattr *info, *data, *other;
	struct rtnl r;

	rtnl_start(&r, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
	rtnl_put(&r, IFLA_IFNAME, name, strlen(name) + 1);
	info = rtnl_put(&r, IFLA_LINKINFO, NULL, 0);
	rtnl_put(&r, IFLA_INFO_KIND, "veth", 4);
	data = rtnl_put(&r, IFLA_INFO_DATA, NULL, 0);
	other = rtnl_put(&r, VETH_INFO_PEER, &link, sizeof(link));
	rtnl_put(&r, IFLA_IFNAME, peer, strlen(peer) + 1);
	if (attr)
		rtnl_put(&r, attr, &ns, sizeof(ns));
	rtnl_close(&r, other);
	rtnl_close(&r, data);
	rtnl_close(&r, info);
	return rtnl_talk(&r);
}

static inline int rtnl_move(const char *name, int attr, unsigned int ns)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = if_nametoindex(name) };
	struct rtnl r;

	rtnl_start(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	rtnl_put(&r, attr, &ns, sizeof(ns));
	return rtnl_talk(&r);
}

static inline int rtnl_del(const char *name)
{
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC, .ifi_index = if_nametoindex(name) };
	struct rtnl r;

	rtnl_start(&r, RTM_DELLINK, 0, &link, sizeof(link));
	return rtnl_talk(&r);
}

/* Up, with an IPv4 address of 24 bits where there is one. */
static inline int rtnl_up(const char *name, const char *address)
{
	struct ifinfomsg link = {
		.ifi_family = AF_UNSPEC, .ifi_index = if_nametoindex(name),
		.ifi_flags = IFF_UP, .ifi_change = IFF_UP,
	};
	struct ifaddrmsg addr = {
		.ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = link.ifi_index,
	};
	struct in_addr a;
	struct rtnl r;

	rtnl_start(&r, RTM_NEWLINK, 0, &link, sizeof(link));
	if (rtnl_talk(&r) || !address)
		return errno ? -1 : 0;
	rtnl_start(&r, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof(addr));
	need(inet_pton(AF_INET, address, &a) == 1);
	rtnl_put(&r, IFA_LOCAL, &a, 4);
	rtnl_put(&r, IFA_ADDRESS, &a, 4);
	return rtnl_talk(&r);
}

/* ---- namespaces ---- */

static inline int own_netns(void)
{
	return must(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

/* Names and numbers of a namespace differ from run to run; whether two are the same does not. */
static inline bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	must(stat(a, &x));
	must(stat(b, &y));
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static inline bool same_netns(int a, int b)
{
	struct stat x, y;

	must(fstat(a, &x));
	must(fstat(b, &y));
	return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Names of the links in /proc/net/dev of the caller, sorted as the kernel has them. */
static inline const char *links(void)
{
	static char text[1024];
	char line[512], *colon, *name;
	FILE *f = fopen("/proc/thread-self/net/dev", "r");

	need(f != NULL);
	text[0] = 0;
	while (fgets(line, sizeof(line), f)) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = 0;
		for (name = line; *name == ' '; name++)
			;
		strcat(strcat(text, text[0] ? " " : ""), name);
	}
	fclose(f);
	return text;
}

#endif /* RTNL_H */
