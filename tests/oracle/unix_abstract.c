// SPDX-License-Identifier: GPL-2.0
/* Abstract names of unix sockets are told as they were given, by all calls that take or tell one. */
#include "oracle.h"
#include <stddef.h>

static socklen_t name(struct sockaddr_un *a, const char *text, size_t n)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path + 1, text, n);
	return offsetof(struct sockaddr_un, sun_path) + 1 + n;
}

/* "NAME" of N, in a buffer that was full of x, and whether more than that was written. */
static void tell(const char *what, const void *address, socklen_t len, size_t room)
{
	const unsigned char *p = address;
	size_t i, touched = room;

	printf("%s: length %u, '", what, len);
	for (i = 2; i < len && i < room; i++)
		putchar(p[i] ? p[i] : '.');
	while (touched && p[touched - 1] == 'x')
		touched--;
	printf("', beyond it %d\n", touched > len);
}

typedef int (*tells)(int, struct sockaddr *, socklen_t *);

static void ask(const char *what, tells f, int fd)
{
	static const socklen_t rooms[] = { 128, 110, 20, 9, 3, 2, 0 };
	char b[128];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rooms); i++) {
		socklen_t len = rooms[i];

		memset(b, 'x', sizeof(b));
		must(f(fd, (void *)b, &len));
		tell(what, b, len, sizeof(b));
	}
}

static void datagrams(const char *text, size_t n)
{
	struct sockaddr_un a, b;
	socklen_t alen = name(&a, text, n), blen, len;
	int x = must(socket(AF_UNIX, SOCK_DGRAM, 0)), y = must(socket(AF_UNIX, SOCK_DGRAM, 0)), i;
	char buf[16], from[128];
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr msg = { .msg_name = from, .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mmsg[2] = { { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } },
				   { .msg_hdr = { .msg_iov = &iov, .msg_iovlen = 1 } } };
	char froms[2][128];

	blen = name(&b, "the other end", 13);
	T(bind(x, (void *)&a, alen));
	T(bind(y, (void *)&b, blen));
	T(bind(socket(AF_UNIX, SOCK_DGRAM, 0), (void *)&a, alen));
	T(sendto(x, "1", 1, 0, (void *)&b, blen));
	memset(from, 'x', sizeof(from));
	len = sizeof(from);
	T(recvfrom(y, buf, sizeof(buf), 0, (void *)from, &len));
	tell("recvfrom", from, len, sizeof(from));
	T(sendto(y, "22", 2, 0, (void *)from, len));
	T(recvfrom(x, buf, sizeof(buf), 0, NULL, NULL));

	for (i = 0; i < 3; i++) {
		static const socklen_t rooms[] = { 128, 8, 0 };

		memset(from, 'x', sizeof(from));
		msg.msg_namelen = alen;
		msg.msg_name = &b;
		msg.msg_namelen = blen;
		T(sendmsg(x, &msg, 0));
		msg.msg_name = from;
		msg.msg_namelen = rooms[i];
		T(recvmsg(y, &msg, 0));
		tell("recvmsg", from, msg.msg_namelen, sizeof(from));
	}
	for (i = 0; i < 2; i++) {
		mmsg[i].msg_hdr.msg_name = &b;
		mmsg[i].msg_hdr.msg_namelen = blen;
	}
	T(sendmmsg(x, mmsg, 2, 0));
	for (i = 0; i < 2; i++) {
		memset(froms[i], 'x', sizeof(froms[i]));
		mmsg[i].msg_hdr.msg_name = froms[i];
		mmsg[i].msg_hdr.msg_namelen = sizeof(froms[i]);
	}
	T(recvmmsg(y, mmsg, 2, 0, NULL));
	/* A node lets the host write there, and then takes its prefix out: within the room that there is. */
	tell("recvmmsg", froms[0], mmsg[0].msg_hdr.msg_namelen, mmsg[0].msg_hdr.msg_namelen);
	tell("recvmmsg", froms[1], mmsg[1].msg_hdr.msg_namelen, mmsg[1].msg_hdr.msg_namelen);
	T(connect(x, (void *)&b, blen));
	ask("getpeername", getpeername, x);
	T(send(x, "4444", 4, 0));
	T(recv(y, buf, sizeof(buf), 0));
	close(x);
	T(sendto(y, "1", 1, 0, (void *)&a, alen));
	close(y);
}

static void streams(const char *text, size_t n)
{
	struct sockaddr_un a, b;
	socklen_t alen = name(&a, text, n), blen, len = 110;
	int l = must(socket(AF_UNIX, SOCK_STREAM, 0)), c = must(socket(AF_UNIX, SOCK_STREAM, 0)), s;

	T(connect(c, (void *)&a, alen));
	T(bind(l, (void *)&a, alen));
	T(listen(l, 5));
	ask("getsockname", getsockname, l);
	blen = name(&b, "client", 6);
	T(bind(c, (void *)&b, blen));
	T(connect(c, (void *)&a, alen));
	memset(&b, 'x', sizeof(b));
	s = must(accept(l, (void *)&b, &len));
	tell("accept", &b, len, sizeof(b));
	ask("getpeername", getpeername, s);
	ask("getsockname", getsockname, s);
	T(connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&a, alen));
	len = sizeof(b);
	T(accept4(l, (void *)8, &len, SOCK_NONBLOCK));
	close(s);
	close(c);
	close(l);
}

/* Names that the kernel chooses: by bind(), and where credentials are passed. */
static void chosen(void)
{
	int a = must(socket(AF_UNIX, SOCK_DGRAM, 0)), b = must(socket(AF_UNIX, SOCK_DGRAM, 0)), on = 1;
	struct sockaddr_un at, from;
	socklen_t len = sizeof(at);
	char c;

	at.sun_family = AF_UNIX;
	T(bind(a, (void *)&at, 2));
	must(getsockname(a, (void *)&at, &len));
	say("length %u", len);
	must(setsockopt(b, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)));
	T(sendto(b, "b", 1, 0, (void *)&at, len));
	len = sizeof(from);
	T(recvfrom(a, &c, 1, 0, (void *)&from, &len));
	say("length %u", len);
	T(sendto(a, "a", 1, 0, (void *)&from, len));
	T(recv(b, &c, 1, 0));
	T(connect(b, (void *)&at, sizeof(sa_family_t) + 6));
	close(a);
	close(b);
}

static void mistakes(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = must(socket(AF_UNIX, SOCK_STREAM, 0));
	socklen_t len = 10;

	T(bind(s, NULL, 10));
	T(bind(s, (void *)8, 10));
	T(bind(s, (void *)&a, 111));
	T(bind(s, (void *)&a, 1));
	T(connect(s, (void *)&a, 2));
	T(connect(s, (void *)&a, 10));
	T(getsockname(s, NULL, &len));
	T(getsockname(s, (void *)&a, NULL));
	T(getsockname(s, (void *)8, &len));
	len = -1;
	T(getsockname(s, (void *)&a, &len));
	len = sizeof(a);
	T(getpeername(s, (void *)&a, &len));
	T(accept(s, (void *)&a, &len));
	T(sendto(s, "x", 1, 0, (void *)&a, 10));
	T(bind(99, (void *)&a, 10));
	close(s);
}

int main(void)
{
	char full[107];

	memset(full, 'f', sizeof(full));
	streams("a name", 6);
	streams("ends in NULs\0\0\0", 15);
	streams("", 0);
	streams("\0", 1);
	streams(full, 97);
	streams(full, 98);
	streams(full, 107);
	memset(full + 10, 0, 97);
	streams(full, 107);
	datagrams("a name", 6);
	datagrams(full, 107);
	chosen();
	mistakes();
	return 0;
}
