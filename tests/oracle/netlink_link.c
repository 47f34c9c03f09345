// SPDX-License-Identifier: GPL-2.0
/* rtnetlink: dumps of links, addresses and routes; one interface made, seen and removed. */
#include "oracle.h"
#include <linux/rtnetlink.h>
#include <linux/if_link.h>

static int nl;
static char buf[65536];

struct request {
	struct nlmsghdr h;
	char payload[512];
};

static void put(struct request *r, int type, const void *value, int len)
{
	struct rtattr *a = (struct rtattr *)((char *)r + NLMSG_ALIGN(r->h.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), value, len);
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

static void start(struct request *r, int type, int flags, const void *body, int len)
{
	static int seq;

	memset(r, 0, sizeof(*r));
	r->h.nlmsg_type = type;
	r->h.nlmsg_flags = NLM_F_REQUEST | flags;
	r->h.nlmsg_seq = ++seq;
	r->h.nlmsg_len = NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(&r->h), body, len);
}

static void show(struct nlmsghdr *h)
{
	char text[64] = "?";

	if (h->nlmsg_type == RTM_NEWLINK) {
		struct ifinfomsg *i = NLMSG_DATA(h);
		int len = IFLA_PAYLOAD(h);

		for (struct rtattr *a = IFLA_RTA(i); RTA_OK(a, len); a = RTA_NEXT(a, len)) {
			if (a->rta_type == IFLA_IFNAME)
				say("  link %d %s type %d flags %#x", i->ifi_index, (char *)RTA_DATA(a),
				    i->ifi_type, i->ifi_flags);
			if (a->rta_type == IFLA_MTU)
				say("    mtu %u", *(unsigned int *)RTA_DATA(a));
		}
	} else if (h->nlmsg_type == RTM_NEWADDR) {
		struct ifaddrmsg *i = NLMSG_DATA(h);
		int len = IFA_PAYLOAD(h);

		for (struct rtattr *a = IFA_RTA(i); RTA_OK(a, len); a = RTA_NEXT(a, len))
			if (a->rta_type == IFA_ADDRESS)
				say("  address %s/%d on %d scope %d", inet_ntop(i->ifa_family, RTA_DATA(a), text, 64),
				    i->ifa_prefixlen, i->ifa_index, i->ifa_scope);
	} else if (h->nlmsg_type == RTM_NEWROUTE) {
		struct rtmsg *r = NLMSG_DATA(h);
		int len = RTM_PAYLOAD(h);

		strcpy(text, "default");
		for (struct rtattr *a = RTM_RTA(r); RTA_OK(a, len); a = RTA_NEXT(a, len))
			if (a->rta_type == RTA_DST)
				inet_ntop(r->rtm_family, RTA_DATA(a), text, 64);
		say("  route %s/%d table %d type %d scope %d proto %d", text, r->rtm_dst_len, r->rtm_table,
		    r->rtm_type, r->rtm_scope, r->rtm_protocol);
	}
}

/* Sends, and reads until the end of a dump or an acknowledgement. */
static void talk(const char *what, struct request *r)
{
	say("%s", what);
	if (send(nl, r, r->h.nlmsg_len, 0) < 0) {
		say("  send: %s", ename(errno));
		return;
	}
	for (;;) {
		int n = recv(nl, buf, sizeof(buf), 0);

		if (n < 0) {
			say("  recv: %s", ename(errno));
			return;
		}
		for (struct nlmsghdr *h = (struct nlmsghdr *)buf; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE) {
				say("  done");
				return;
			}
			if (h->nlmsg_type == NLMSG_ERROR) {
				say("  %s", ename(-((struct nlmsgerr *)NLMSG_DATA(h))->error));
				return;
			}
			show(h);
		}
	}
}

int main(void)
{
	struct request r;
	struct ifinfomsg link = { .ifi_family = AF_UNSPEC };
	struct ifaddrmsg addr = { .ifa_family = AF_UNSPEC };
	struct rtmsg route = { .rtm_family = AF_INET };
	struct sockaddr_nl me;
	socklen_t len = sizeof(me);
	struct rtattr *nest;
	struct in_addr a;

	nl = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	memset(&me, 0, sizeof(me));
	me.nl_family = AF_NETLINK;
	T(bind(nl, (struct sockaddr *)&me, sizeof(me)));
	T(getsockname(nl, (struct sockaddr *)&me, &len));
	say("len %d, port is the pid %d", len, me.nl_pid == (unsigned int)getpid());

	start(&r, RTM_GETLINK, NLM_F_DUMP, &link, sizeof(link));
	talk("links", &r);
	start(&r, RTM_GETADDR, NLM_F_DUMP, &addr, sizeof(addr));
	talk("addresses", &r);
	start(&r, RTM_GETROUTE, NLM_F_DUMP, &route, sizeof(route));
	talk("routes", &r);

	start(&r, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &link, sizeof(link));
	put(&r, IFLA_IFNAME, "bridge7", 8);
	nest = (struct rtattr *)((char *)&r + NLMSG_ALIGN(r.h.nlmsg_len));
	put(&r, IFLA_LINKINFO, NULL, 0);
	put(&r, IFLA_INFO_KIND, "bridge", 6);
	nest->rta_len = (char *)&r + r.h.nlmsg_len - (char *)nest;
	talk("make bridge7", &r);
	talk("make it again", &r);
	link.ifi_index = if_nametoindex("bridge7");
	say("index from its name %d", link.ifi_index > 0);
	link.ifi_flags = IFF_UP;
	link.ifi_change = IFF_UP;
	start(&r, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
	talk("up", &r);
	addr.ifa_family = AF_INET;
	addr.ifa_prefixlen = 24;
	addr.ifa_index = link.ifi_index;
	inet_pton(AF_INET, "10.7.7.1", &a);
	start(&r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof(addr));
	put(&r, IFA_LOCAL, &a, 4);
	put(&r, IFA_ADDRESS, &a, 4);
	talk("address", &r);
	start(&r, RTM_GETROUTE, NLM_F_DUMP, &route, sizeof(route));
	talk("routes", &r);
	{
		union address to = address4("10.7.7.1", 9);
		int fd = must(socket(AF_INET, SOCK_DGRAM, 0));

		T(connect(fd, &to.sa, sizeof(to.in)));
	}
	start(&r, RTM_DELLINK, NLM_F_ACK, &link, sizeof(link));
	talk("remove", &r);
	talk("remove again", &r);
	start(&r, 9999, NLM_F_ACK, &link, sizeof(link));
	talk("no such type", &r);
	r.h.nlmsg_len = 5;
	T(send(nl, &r, 5, 0));
	T(recv(nl, buf, sizeof(buf), MSG_DONTWAIT));
	return 0;
}
