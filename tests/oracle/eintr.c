// SPDX-License-Identifier: GPL-2.0
/*
 * Every blocking call, interrupted by a handler: without SA_RESTART it fails
 * with EINTR; with it some calls go on until their data comes, some never do.
 */
#include "oracle.h"

static volatile sig_atomic_t handled;
static pthread_t target;
static pid_t target_tid;
static int tcp[2], udp[2], full[2], l, e;
static char big[1 << 20], buf[64];
static int restart;

static void on_signal(int signo)
{
	handled++;
}

/* Signals the waiting thread, then gives the call what it waits for. */
static void *disturb(void *arg)
{
	const char *what = arg;

	wait_until_asleep(target_tid);
	pthread_kill(target, SIGUSR1);
	if (!restart)
		return NULL;
	/* It may have no CPU for long, and be seen asleep before the signal has woken it. */
	while (!handled)
		sleep_ms(1);
	wait_until_asleep(target_tid);
	if (!strcmp(what, "tcp"))
		must(write(tcp[1], "data", 4));
	else if (!strcmp(what, "udp"))
		must(send(udp[1], "data", 4, 0));
	else if (!strcmp(what, "accept"))
		must(connect_port(must(socket(AF_INET, SOCK_STREAM, 0)), AF_INET, local_port(l)));
	else if (!strcmp(what, "full"))
		while (recv(full[1], buf, sizeof(buf), MSG_DONTWAIT) > 0 ||
		       poll(&(struct pollfd){ full[1], POLLIN }, 1, 200) == 1)
			;
	return NULL;
}

#define CASE(what, expr) do {						\
	pthread_t t;							\
	long r;								\
	int err;							\
									\
	handled = 0;							\
	t = spawn(disturb, what);					\
	errno = 0;							\
	r = (expr);							\
	err = errno;							\
	join(t);							\
	say("%s -> %s, handled %d", #expr, r == -1 ? ename(err) : "ok", handled); \
	while (recv(tcp[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)	\
		;							\
	while (recv(udp[0], buf, sizeof(buf), MSG_DONTWAIT) > 0)	\
		;							\
} while (0)

int main(void)
{
	struct iovec iov = { buf, sizeof(buf) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mm = { .msg_hdr = m };
	struct epoll_event ev = { .events = EPOLLIN };
	struct pollfd f = { .events = POLLIN };
	struct timespec ts;
	fd_set set;

	target = pthread_self();
	target_tid = gettid();
	tcp_pair(AF_INET, tcp);
	udp_pair(AF_INET, udp);
	tcp_pair(AF_INET, full);
	l = listener(AF_INET, 8);
	e = must(epoll_create1(0));
	must(epoll_ctl(e, EPOLL_CTL_ADD, udp[0], &ev));
	f.fd = udp[0];
	for (restart = 0; restart < 2; restart++) {
		struct sigaction sa = { .sa_handler = on_signal, .sa_flags = restart ? SA_RESTART : 0 };

		must(sigaction(SIGUSR1, &sa, NULL));
		say("SA_RESTART %d", restart);
		CASE("tcp", read(tcp[0], buf, 8));
		CASE("tcp", recv(tcp[0], buf, 8, 0));
		CASE("tcp", recvfrom(tcp[0], buf, 8, 0, NULL, NULL));
		CASE("tcp", readv(tcp[0], &iov, 1));
		CASE("tcp", recv(tcp[0], buf, 4, MSG_PEEK));
		CASE("udp", read(udp[0], buf, 8));
		CASE("udp", recvfrom(udp[0], buf, 8, 0, NULL, NULL));
		CASE("udp", recvmsg(udp[0], &m, 0));
		CASE("udp", recvmmsg(udp[0], &mm, 1, 0, NULL));
		CASE("accept", accept(l, NULL, NULL));
		CASE("accept", accept4(l, NULL, NULL, SOCK_CLOEXEC));
		CASE("udp", poll(&f, 1, 5000));
		ts = (struct timespec){ 5, 0 };
		CASE("udp", ppoll(&f, 1, &ts, NULL));
		FD_ZERO(&set);
		FD_SET(udp[0], &set);
		CASE("udp", select(udp[0] + 1, &set, NULL, NULL, &(struct timeval){ 5, 0 }));
		FD_ZERO(&set);
		FD_SET(udp[0], &set);
		CASE("udp", pselect(udp[0] + 1, &set, NULL, NULL, &ts, NULL));
		CASE("udp", epoll_wait(e, &ev, 1, 5000));
		CASE("udp", epoll_pwait(e, &ev, 1, 5000, NULL));
		fill(full[0], big, sizeof(big));
		CASE("full", write(full[0], big, 1));
		fill(full[0], big, sizeof(big));
		CASE("full", send(full[0], big, 1, 0));

		/* A time-out set on the socket: never restarted. */
		must(setsockopt(udp[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 10, 0 }, sizeof(struct timeval)));
		CASE("udp", recv(udp[0], buf, 8, 0));
		must(setsockopt(udp[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 0 }, sizeof(struct timeval)));
	}
	return 0;
}
