// SPDX-License-Identifier: GPL-2.0
/* sendfile() of more than the file has: its end is sent at once, and not kept for what might follow. */
#include "oracle.h"
#include <sys/sendfile.h>

int main(void)
{
	char name[] = "/tmp/oracle.XXXXXX";
	int f = must(mkstemp(name)), p[2], u[2];
	struct pollfd w = { .events = POLLIN };
	char buf[100000];
	off_t o = 0;

	unlink(name);
	must(ftruncate(f, 500));
	tcp_pair(AF_INET, p);
	udp_pair(AF_INET, u);

	w.fd = u[1];
	T(sendfile(u[0], f, &o, 1000));
	T(poll(&w, 1, 1000));
	T(recv(u[1], buf, sizeof(buf), MSG_DONTWAIT));
	T(sendfile(u[0], f, &o, 1000));
	T(poll(&w, 1, 50));

	/* Nothing is on the way that would bring an acknowledgement: the kernel would wait 200 ms. */
	w.fd = p[1];
	o = 0;
	T(sendfile(p[0], f, &o, 1 << 20));
	T(poll(&w, 1, 100));
	T(recv(p[1], buf, sizeof(buf), MSG_DONTWAIT));
	/* As much as one step of the copying takes, and not a byte more. */
	must(ftruncate(f, 65536));
	o = 0;
	T(sendfile(u[0], f, &o, 65536));
	o = 65036;
	w.fd = u[1];
	T(sendfile(u[0], f, &o, 100000));
	T(poll(&w, 1, 1000));
	T(recv(u[1], buf, sizeof(buf), MSG_DONTWAIT));
	return 0;
}
