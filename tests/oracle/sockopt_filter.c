// SPDX-License-Identifier: GPL-2.0
/* A classic BPF filter on a socket: attach, effect, detach, lock, bad programs. */
#include "oracle.h"
#include <linux/filter.h>

int main(void)
{
	/* Take 8 + 3 bytes of datagrams that start with 'y', none of others. */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 8),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 'y', 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 11),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	struct sock_filter bad[] = { BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0) };
	struct sock_fprog no_return = { 1, bad }, empty = { 0, bad }, null = { 3, NULL };
	struct sock_filter back[8];
	socklen_t len;
	int p[2], one = 1;
	char b[32] = "";

	udp_pair(AF_INET, p);
	T(setsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, &no_return, sizeof(prog)));
	T(setsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, &empty, sizeof(prog)));
	T(setsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, &null, sizeof(prog)));
	T(setsockopt(p[1], SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one)));
	T(setsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	len = 0;
	T(getsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, NULL, &len));
	N(len);
	len = ARRAY_SIZE(back);
	T(getsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, back, &len));
	say("the same back: %d", !memcmp(back, code, sizeof(code)));
	T(send(p[0], "no", 2, 0));
	T(send(p[0], "yes and more", 12, 0));
	T(recv(p[1], b, sizeof(b), MSG_TRUNC | MSG_DONTWAIT));
	say("%s", b);
	T(recv(p[1], b, sizeof(b), MSG_DONTWAIT));
	T(setsockopt(p[1], SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one)));
	T(setsockopt(p[1], SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one)));
	T(setsockopt(p[1], SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)));
	T(set_int(p[1], SOL_SOCKET, SO_LOCK_FILTER, 0));
	return 0;
}
