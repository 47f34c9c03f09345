/* SPDX-License-Identifier: GPL-2.0 */
/* cmsg.h - sending and printing ancillary data */
#ifndef CMSG_H
#define CMSG_H

#include "oracle.h"
#include <linux/errqueue.h>

struct message {
	struct msghdr header;
	struct iovec iov;
	union address from;
	char data[2048];
	char control[1024];
};

static struct msghdr *fresh(struct message *m)
{
	memset(m, 0, sizeof(*m));
	m->iov.iov_base = m->data;
	m->iov.iov_len = sizeof(m->data);
	m->header.msg_name = &m->from;
	m->header.msg_namelen = sizeof(m->from);
	m->header.msg_iov = &m->iov;
	m->header.msg_iovlen = 1;
	m->header.msg_control = m->control;
	m->header.msg_controllen = sizeof(m->control);
	return &m->header;
}

/* Puts a control message behind those that are there (*used bytes). */
static void add_cmsg(struct message *m, size_t *used, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)(m->control + *used);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	*used += CMSG_SPACE(len);
	m->header.msg_controllen = *used;
}

static void print_error(const struct cmsghdr *c, int v6)
{
	struct sock_extended_err e;

	memcpy(&e, CMSG_DATA(c), sizeof(e));
	/* Where the offender's address is there, which one. */
	union address a;

	memset(&a, 0, sizeof(a));
	memcpy(&a, (char *)CMSG_DATA(c) + sizeof(e), v6 ? sizeof(a.in6) : sizeof(a.in));
	say("  error %s origin %d type %d code %d info %u data %u offender %s",
	    ename(e.ee_errno), e.ee_origin, e.ee_type, e.ee_code, e.ee_info, e.ee_data,
	    a.sa.sa_family ? address_text(&a) : "none");
}

/* All control messages, in the order in which they come. */
static void print_cmsgs(struct msghdr *m)
{
	char text[INET6_ADDRSTRLEN], text2[INET6_ADDRSTRLEN];

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int value = 0;
		size_t len = c->cmsg_len - CMSG_LEN(0);

		memcpy(&value, CMSG_DATA(c), len < 4 ? len : 4);
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			say("  IP_PKTINFO if %d spec %s addr %s", i.ipi_ifindex,
			    inet_ntop(AF_INET, &i.ipi_spec_dst, text, sizeof(text)),
			    inet_ntop(AF_INET, &i.ipi_addr, text2, sizeof(text2)));
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			say("  IPV6_PKTINFO if %d addr %s", i.ipi6_ifindex,
			    inet_ntop(AF_INET6, &i.ipi6_addr, text, sizeof(text)));
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) {
			print_error(c, 0);
		} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR) {
			print_error(c, 1);
		} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_ORIGDSTADDR) {
			union address a;

			memcpy(&a, CMSG_DATA(c), sizeof(a.in));
			say("  IP_ORIGDSTADDR %s", address_text(&a));
		} else if (c->cmsg_level == SOL_SOCKET && (c->cmsg_type == SO_TIMESTAMP ||
			   c->cmsg_type == SO_TIMESTAMPNS || c->cmsg_type == SO_TIMESTAMPING)) {
			struct timespec t[3], now;

			memset(t, 0, sizeof(t));
			memcpy(t, CMSG_DATA(c), len < sizeof(t) ? len : sizeof(t));
			clock_gettime(CLOCK_REALTIME, &now);
			say("  time stamp type %d len %zu, of the last ten seconds %d", c->cmsg_type,
			    len, t[0].tv_sec <= now.tv_sec && t[0].tv_sec >= now.tv_sec - 10);
		} else {
			say("  level %d type %d len %zu value %d", c->cmsg_level, c->cmsg_type, len, value);
		}
	}
}

/* recvmsg, and everything it says. */
static void receive(int fd, int flags)
{
	struct message m;
	ssize_t n;

	fresh(&m);
	n = recvmsg(fd, &m.header, flags);
	if (n < 0) {
		say("recvmsg -> %s", ename(errno));
		return;
	}
	say("recvmsg -> %zd flags %s name %s len %d", n, msg_flags(m.header.msg_flags),
	    m.header.msg_namelen ? address_text(&m.from) : "none", m.header.msg_namelen);
	print_cmsgs(&m.header);
}

#endif /* CMSG_H */
