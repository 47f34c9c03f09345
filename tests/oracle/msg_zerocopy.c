// SPDX-License-Identifier: GPL-2.0
/* MSG_ZEROCOPY: the data arrive, and the completion comes by way of the error queue. */
#include "cmsg.h"

int main(void)
{
	static char out[100000], in[100000];
	int p[2];
	size_t got = 0;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = i * 13;
	tcp_pair(AF_INET, p);
	T(set_int(p[0], SOL_SOCKET, SO_ZEROCOPY, 1));
	T(send(p[0], out, sizeof(out), MSG_ZEROCOPY));
	while (got < sizeof(in))
		got += must(recv(p[1], in + got, sizeof(in) - got, 0));
	say("equal %d", !memcmp(in, out, sizeof(in)));
	need(wait_for(p[0], 0));
	receive(p[0], MSG_ERRQUEUE | MSG_DONTWAIT);
	T(send(p[0], out, 1, MSG_ZEROCOPY));
	T(recv(p[1], in, 1, 0));
	return 0;
}
