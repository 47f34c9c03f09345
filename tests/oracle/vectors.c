// SPDX-License-Identifier: GPL-2.0
/* readv, writev and their relatives on sockets: splitting, empty parts, limits, offsets. */
#include "oracle.h"

int main(void)
{
	char a[4] = "", b[4] = "", c[32] = "";
	struct iovec out[] = { { "one", 3 }, { NULL, 0 }, { "", 0 }, { "two4", 4 }, { "5", 1 } };
	struct iovec in[] = { { a, 2 }, { b, 0 }, { b, 3 }, { c, 32 } };
	struct iovec many[1025];
	static char bytes[1025];
	int p[2], u[2];

	tcp_pair(AF_INET, p);
	T(writev(p[0], out, 5));
	need(wait_for(p[1], POLLIN));
	T(readv(p[1], in, 4));
	say("%.2s %.3s %.3s", a, b, c);
	T(writev(p[0], out, 0));
	T(readv(p[1], in, 0));
	T(writev(p[0], out, -1));
	T(writev(p[0], out, 1025));
	for (int i = 0; i < 1025; i++)
		many[i] = (struct iovec){ bytes + i, 1 };
	T(writev(p[0], many, 1024));
	T(recv(p[1], bytes, 1024, MSG_WAITALL));
	many[0].iov_len = -1;
	T(writev(p[0], many, 2));
	T(pwrite(p[0], "x", 1, 0));
	T(pread(p[1], c, 1, 0));
	T(pwritev(p[0], out, 1, 0));
	T(preadv(p[1], in, 1, 0));
	T(preadv2(p[1], in, 4, -1, RWF_NOWAIT));
	T(pwritev2(p[0], out, 1, -1, 0));
	T(preadv2(p[1], in, 4, -1, 0));
	T(preadv2(p[1], in, 4, -1, 0x1000));

	udp_pair(AF_INET, u);
	T(writev(u[0], out, 5));
	T(readv(u[1], in, 4));
	T(writev(u[0], out, 5));
	T(readv(u[1], in, 1));
	T(recv(u[1], c, 32, MSG_DONTWAIT));
	return 0;
}
