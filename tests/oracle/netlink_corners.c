// SPDX-License-Identifier: GPL-2.0
/* Netlink sockets themselves: ports, groups, peeking, truncation, notifications, diag. */
#include "oracle.h"
#include <linux/rtnetlink.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>

int main(void)
{
	int a = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)), b = must(socket(AF_NETLINK, SOCK_DGRAM, NETLINK_ROUTE));
	struct sockaddr_nl n = { .nl_family = AF_NETLINK }, from;
	socklen_t len = sizeof(from);
	struct {
		struct nlmsghdr h;
		struct ifinfomsg i;
	} q = { { sizeof(q), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0 }, { 0 } };
	static char buf[65536];
	struct iovec iov = { buf, 10 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	int fd, l = listener(AF_INET, 1), d, found = 0, size;

	n.nl_pid = 12345;
	T(bind(a, (void *)&n, sizeof(n)));
	T(bind(b, (void *)&n, sizeof(n)));
	T(bind(a, (void *)&n, sizeof(n)));
	n.nl_pid = 0;
	T(bind(b, (void *)&n, 8));
	T(bind(b, (void *)&n, sizeof(n)));
	must(getsockname(b, (void *)&from, &len));
	say("its own port %d", from.nl_pid != 0 && from.nl_pid != 12345);
	T(send(a, &q, sizeof(q), 0));
	T(recv(a, NULL, 0, MSG_PEEK | MSG_TRUNC) > 500);
	T(recvmsg(a, &m, 0));
	say("flags %s", msg_flags(m.msg_flags));
	while (recv(a, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	len = sizeof(from);
	must(send(a, &q, sizeof(q), 0));
	T(recvfrom(a, buf, sizeof(buf), 0, (void *)&from, &len) > 500);
	say("from port %d groups %d len %d", from.nl_pid, from.nl_groups, len);
	T(listen(a, 1));
	T(accept(a, NULL, NULL));
	T(shutdown(a, SHUT_RDWR));
	say("polled %s", polled(b));

	/* Notifications: a second socket changes something. */
	fd = must(socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK, NETLINK_ROUTE));
	memset(&n, 0, sizeof(n));
	n.nl_family = AF_NETLINK;
	n.nl_groups = RTMGRP_LINK;
	T(bind(fd, (void *)&n, sizeof(n)));
	T(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &(int){ RTNLGRP_IPV4_IFADDR }, 4));
	T(setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &(int){ 9999 }, 4));
	T(recv(fd, buf, sizeof(buf), 0));
	q.h.nlmsg_type = RTM_NEWLINK;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	q.i.ifi_index = 1;
	q.i.ifi_change = IFF_UP;
	while (recv(b, buf, sizeof(buf), MSG_DONTWAIT) > 0)
		;
	must(send(b, &q, sizeof(q), 0));
	T(recv(b, buf, sizeof(buf), 0) > 0);
	need(wait_for(fd, POLLIN));
	T(recv(fd, buf, sizeof(buf), 0) > 500);
	say("type %d for interface %d, up %d", ((struct nlmsghdr *)buf)->nlmsg_type,
	    ((struct ifinfomsg *)NLMSG_DATA(buf))->ifi_index,
	    !!(((struct ifinfomsg *)NLMSG_DATA(buf))->ifi_flags & IFF_UP));

	/* The request of ss. */
	d = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG));
	{
		struct {
			struct nlmsghdr h;
			struct inet_diag_req_v2 r;
		} diag = { { sizeof(diag), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, 7, 0 },
			   { .sdiag_family = AF_INET, .sdiag_protocol = IPPROTO_TCP, .idiag_states = 1 << 10 } };

		must(send(d, &diag, sizeof(diag), 0));
		size = must(recv(d, buf, sizeof(buf), 0));
		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, size); h = NLMSG_NEXT(h, size))
			if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY) {
				struct inet_diag_msg *i = NLMSG_DATA(h);

				found += ntohs(i->id.idiag_sport) == local_port(l);
			}
	}
	say("listener found %d", found);
	OK(socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC));
	OK(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
	OK(socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM));
	T(socket(AF_NETLINK, SOCK_RAW, 40));
	return 0;
}
