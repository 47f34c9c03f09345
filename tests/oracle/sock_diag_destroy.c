// SPDX-License-Identifier: GPL-2.0
/* SOCK_DESTROY: a socket ended from outside, with ECONNABORTED for its owner. */
#include "oracle.h"
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>

int main(void)
{
	int p[2], d = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG));
	struct {
		struct nlmsghdr h;
		struct inet_diag_req_v2 r;
	} q;
	char b[4096];

	tcp_pair(AF_INET, p);
	memset(&q, 0, sizeof(q));
	q.h.nlmsg_len = sizeof(q);
	q.h.nlmsg_type = SOCK_DESTROY;
	q.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	q.r.sdiag_family = AF_INET;
	q.r.sdiag_protocol = IPPROTO_TCP;
	q.r.id.idiag_src[0] = q.r.id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
	q.r.id.idiag_sport = htons(local_port(p[0]));
	q.r.id.idiag_dport = htons(local_port(p[1]));
	q.r.id.idiag_cookie[0] = q.r.id.idiag_cookie[1] = ~0u;
	must(send(d, &q, sizeof(q), 0));
	must(recv(d, b, sizeof(b), 0));
	say("%s", ename(-((struct nlmsgerr *)NLMSG_DATA(b))->error));
	say("polled %s", polled(p[0]));
	T(recv(p[0], b, 4, 0));
	sleep_ms(10);
	T(recv(p[1], b, 4, 0));
	must(send(d, &q, sizeof(q), 0));
	must(recv(d, b, sizeof(b), 0));
	say("%s", ename(-((struct nlmsgerr *)NLMSG_DATA(b))->error));
	return 0;
}
