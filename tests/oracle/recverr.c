// SPDX-License-Identifier: GPL-2.0
/* IP_RECVERR and IPV6_RECVERR: errors with their cause, from the error queue. */
#include "cmsg.h"

static void family(int f)
{
	int gone = bound(f, SOCK_DGRAM), port = local_port(gone), fd = bound(f, SOCK_DGRAM), tcp;
	union address a = loopback(f, port);
	static char big[70000];

	say("family %d", f);
	close(gone);
	if (f == AF_INET)
		must(set_int(fd, IPPROTO_IP, IP_RECVERR, 1));
	else
		must(set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1));
	receive(fd, MSG_ERRQUEUE);	/* never waits */
	/* Unconnected, and still it hears of the refusal. */
	T(sendto(fd, "abc", 3, 0, &a.sa, address_len(&a)));
	sleep_ms(5);
	say("polled %s", polled(fd));
	receive(fd, MSG_ERRQUEUE);
	say("polled %s", polled(fd));
	N(int_option(fd, SOL_SOCKET, SO_ERROR));
	T(sendto(fd, "abc", 3, 0, &a.sa, address_len(&a)));
	T(sendto(fd, "abc", 3, 0, &a.sa, address_len(&a)));
	T(recv(fd, big, 8, MSG_DONTWAIT));
	receive(fd, MSG_ERRQUEUE | MSG_DONTWAIT);
	receive(fd, MSG_ERRQUEUE | MSG_DONTWAIT);

	/* Too long is an error from here, with the largest size in it. */
	T(sendto(fd, big, 65530, 0, &a.sa, address_len(&a)));
	receive(fd, MSG_ERRQUEUE | MSG_DONTWAIT);
	T(recv(fd, big, 8, MSG_DONTWAIT));

	tcp = must(socket(f, SOCK_STREAM, 0));
	if (f == AF_INET)
		T(set_int(tcp, IPPROTO_IP, IP_RECVERR, 1));
	T(connect(tcp, &a.sa, address_len(&a)));
	receive(tcp, MSG_ERRQUEUE | MSG_DONTWAIT);
}

int main(void)
{
	family(AF_INET);
	family(AF_INET6);
	return 0;
}
