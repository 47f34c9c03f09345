// SPDX-License-Identifier: GPL-2.0
/* sendmmsg() and recvmmsg() with descriptors. */
#include "scm.h"

#define COUNT 4

int main(void)
{
	static struct parcel out[COUNT], in[COUNT + 1];
	struct mmsghdr hdr[COUNT + 1];
	int ux[2], u[2], p[2], i, n;
	char b[16];

	must(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ux));
	udp_pair(AF_INET, u);
	must(pipe(p));
	memset(hdr, 0, sizeof(hdr));
	packed(&out[0], 3, u, 2);
	packed(&out[1], 4, p, 2);
	packed(&out[2], 5, (int[]){ p[1], u[0] }, 2);
	packed(&out[3], 6, u, 1);
	out[3].header.msg_control = NULL;
	out[3].header.msg_controllen = 0;
	for (i = 0; i < COUNT; i++)
		hdr[i].msg_hdr = out[i].header;
	T(sendmmsg(ux[0], hdr, COUNT, 0));
	for (i = 0; i < COUNT; i++)
		say("%d bytes", hdr[i].msg_len);

	memset(hdr, 0, sizeof(hdr));
	for (i = 0; i <= COUNT; i++)
		hdr[i].msg_hdr = *unpacked(&in[i], sizeof(in[i].control));
	n = T(recvmmsg(ux[1], hdr, COUNT + 1, MSG_DONTWAIT | MSG_CMSG_CLOEXEC, NULL));
	for (i = 0; i < n; i++) {
		in[i].header = hdr[i].msg_hdr;
		look_into(&in[i]);
		say("%d bytes, %d descriptors: %s %s", hdr[i].msg_len, in[i].count,
		    in[i].count ? kind(in[i].fd[0]) : "-", in[i].count ? kind(in[i].fd[1]) : "-");
	}
	close(u[0]);
	T(send(in[2].fd[1], "hello", 5, 0));
	T(recv(in[0].fd[1], b, 16, 0));
	N(fcntl(in[0].fd[0], F_GETFD));

	/* The second can't be sent: the first is, and counts. */
	memset(hdr, 0, sizeof(hdr));
	hdr[0].msg_hdr = *packed(&out[0], 1, &in[0].fd[0], 1);
	hdr[1].msg_hdr = *packed(&out[1], 1, (int[]){ in[0].fd[0], 9999 }, 2);
	T(sendmmsg(ux[0], hdr, 2, 0));
	T(sendmmsg(ux[0], hdr + 1, 1, 0));
	say("%s", kind(take_one(ux[1], 0)));
	T(take_one(ux[1], MSG_DONTWAIT));
	return 0;
}
