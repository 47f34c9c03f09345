// SPDX-License-Identifier: GPL-2.0
/* Ways to a reset, and what each side sees of it. */
#include "oracle.h"

static struct linger zero = { 1, 0 };

static void look(int fd)
{
	char b[8];

	say("state %s polled %s", tcp_state(fd), polled(fd));
	T(recv(fd, b, 8, MSG_DONTWAIT));
	T(recv(fd, b, 8, MSG_DONTWAIT));
	T(send(fd, "x", 1, MSG_NOSIGNAL));
	T(shutdown(fd, SHUT_RDWR));
	say("polled %s", polled(fd));
}

int main(void)
{
	int p[2];

	say("linger zero");
	tcp_pair(AF_INET, p);
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &zero, sizeof(zero)));
	close(p[1]);
	sleep_ms(10);
	look(p[0]);

	say("linger zero, data on the way");
	tcp_pair(AF_INET, p);
	must(write(p[1], "abc", 3));
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &zero, sizeof(zero)));
	close(p[1]);
	sleep_ms(10);
	look(p[0]);

	say("closed with unread data");
	tcp_pair(AF_INET, p);
	must(write(p[0], "unread", 6));
	sleep_ms(10);
	close(p[1]);
	sleep_ms(10);
	look(p[0]);

	say("written to a closed peer");
	tcp_pair(AF_INET, p);
	close(p[1]);
	sleep_ms(10);
	say("polled %s", polled(p[0]));
	T(send(p[0], "x", 1, MSG_NOSIGNAL));
	sleep_ms(10);
	look(p[0]);

	say("reset after half close");
	tcp_pair(AF_INET, p);
	must(shutdown(p[0], SHUT_WR));
	sleep_ms(10);
	must(setsockopt(p[1], SOL_SOCKET, SO_LINGER, &zero, sizeof(zero)));
	close(p[1]);
	sleep_ms(10);
	look(p[0]);

	say("by AF_UNSPEC");
	tcp_pair(AF_INET, p);
	T(connect(p[1], &(struct sockaddr){ .sa_family = AF_UNSPEC }, sizeof(struct sockaddr)));
	sleep_ms(10);
	look(p[0]);
	return 0;
}
