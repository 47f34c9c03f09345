// SPDX-License-Identifier: GPL-2.0
/* A program's user as others learn it: SO_PEERCRED, SCM_CREDENTIALS, by unix sockets and netlink. */
#include "cred.h"

static void told(const char *what, int fd)
{
	char data[64], control[256];
	struct iovec v = { data, sizeof(data) };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c;

	must(recvmsg(fd, &m, 0));
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct ucred *u = (struct ucred *)CMSG_DATA(c);

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			printf("%s: pid %s, uid %d, gid %d\n", what,
			       u->pid == getpid() ? "own" : "other", (int)u->uid, (int)u->gid);
	}
}

static long claim(int fd, const void *to, socklen_t len, uid_t uid)
{
	char control[CMSG_SPACE(sizeof(struct ucred))] = { 0 }, data[32] = { 0 };
	struct nlmsghdr *n = (struct nlmsghdr *)data;
	struct iovec v = { data, sizeof(data) };
	struct msghdr m = { .msg_name = (void *)to, .msg_namelen = len, .msg_iov = &v,
			    .msg_iovlen = 1, .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	struct ucred u = { .pid = getpid(), .uid = uid, .gid = getgid() };

	n->nlmsg_len = sizeof(data);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof(u));
	memcpy(CMSG_DATA(c), &u, sizeof(u));
	return sendmsg(fd, &m, 0);
}

static void by_unix(void)
{
	struct ucred u;
	socklen_t len = sizeof(u);
	int s[2];

	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	must(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &u, &len));
	printf("unix peer: pid %s, uid %d, gid %d\n", u.pid == getpid() ? "own" : "other",
	       (int)u.uid, (int)u.gid);
	must(set_int(s[1], SOL_SOCKET, SO_PASSCRED, 1));
	must(send(s[0], "x", 1, 0));
	told("unix message", s[1]);
	T(claim(s[0], NULL, 0, getuid()));
	told("unix claim", s[1]);
	T(claim(s[0], NULL, 0, SOMEBODY));
}

static void by_netlink(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK }, b = a;
	socklen_t len = sizeof(b);
	int to = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK));
	int from = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_USERSOCK));
	struct nlmsghdr n = { .nlmsg_len = sizeof(n) };

	must(set_int(to, SOL_SOCKET, SO_PASSCRED, 1));
	must(bind(to, (void *)&a, sizeof(a)));
	must(getsockname(to, (void *)&b, &len));
	must(sendto(from, &n, sizeof(n), 0, (void *)&b, sizeof(b)));
	told("netlink message", to);
	if (T(claim(from, &b, sizeof(b), SOMEBODY)) > 0)
		told("netlink claim", to);
}

/* Netlink's question for a right looks at who opened the socket as well. */
static void opener(int fd)
{
	struct {
		struct nlmsghdr n;
		struct ifinfomsg i;
	} up = {
		.n = { .nlmsg_len = sizeof(up), .nlmsg_type = RTM_NEWLINK,
		       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.i = { .ifi_index = 1, .ifi_flags = IFF_UP, .ifi_change = IFF_UP },
	};
	struct {
		struct nlmsghdr n;
		struct nlmsgerr e;
	} answer;

	must(send(fd, &up, sizeof(up), 0));
	must(recv(fd, &answer, sizeof(answer), 0));
	printf("link up by netlink: %s\n", ename(-answer.e.error));
}

static void all(const char *who)
{
	printf("as %s\n", who);
	by_unix();
	by_netlink();
	opener(must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE)));
}

int main(void)
{
	int fd;

	need_root();
	fd = must(socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE));
	all("root");
	must(setegid(SOMEBODY));
	must(seteuid(SOMEBODY));
	all("somebody for now");
	opener(fd);
	must(seteuid(0));
	must(setgid(NOBODY));
	must(setuid(NOBODY));
	all("nobody");
	opener(fd);
	return 0;
}
