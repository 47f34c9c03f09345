// SPDX-License-Identifier: GPL-2.0
/*
 * Signals that meet waiting calls of a node's sockets: interval timers, signalfd in mixed sets, masks of
 * ppoll(), pselect() and epoll_pwait(), handlers on a stack of their own that jump out.
 */
#include "oracle.h"
#include <setjmp.h>

static int u[2], t[2];
static volatile sig_atomic_t alarms, usr1, on_alt;
static char alt[64 << 10];
static sigjmp_buf back;

static void on_alarm(int sig)
{
	char here;

	alarms++;
	on_alt = &here >= alt && &here < alt + sizeof(alt);
}

static void on_usr1(int sig)
{
	usr1++;
}

static void on_jump(int sig)
{
	siglongjmp(back, 1);
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	must(sigaction(sig, &sa, NULL));
}

static void timer(int which, int ms, int again)
{
	struct itimerval it = {
		.it_value = { .tv_usec = ms * 1000 },
		.it_interval = { .tv_usec = again * 1000 },
	};

	must(setitimer(which, &it, NULL));
}

/* ---- interval timers ---- */

static void *late(void *arg)
{
	sleep_ms(250);
	must(send(u[0], "late", 4, 0));
	return arg;
}

/* Many alarms while one call waits: restarted each time, its end is the data's. */
static void restarted(void)
{
	pthread_t thread;
	sigset_t set;
	char b[8];

	handle(SIGALRM, on_alarm, SA_RESTART);
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	must(pthread_sigmask(SIG_BLOCK, &set, NULL));
	must(pthread_create(&thread, NULL, late, NULL) ? -1 : 0);
	must(pthread_sigmask(SIG_UNBLOCK, &set, NULL));
	alarms = 0;
	timer(ITIMER_REAL, 10, 10);
	T(recv(u[1], b, 8, 0));
	timer(ITIMER_REAL, 0, 0);
	say("several alarms: %d", alarms >= 5);
	pthread_join(thread, NULL);
}

static void interrupted(void)
{
	struct pollfd p = { .fd = u[1], .events = POLLIN };
	struct epoll_event ev;
	struct timeval tv = { .tv_sec = 5 };
	int e = must(epoll_create1(0)), l = listener(AF_INET, 1);
	fd_set set;
	char b[8];

	ev.events = EPOLLIN;
	must(epoll_ctl(e, EPOLL_CTL_ADD, u[1], &ev));
	handle(SIGALRM, on_alarm, 0);
	timer(ITIMER_REAL, 30, 0);
	T(recv(u[1], b, 8, 0));
	timer(ITIMER_REAL, 30, 0);
	T(read(t[0], b, 8));
	timer(ITIMER_REAL, 30, 0);
	T(accept(l, NULL, NULL));
	timer(ITIMER_REAL, 30, 0);
	T(poll(&p, 1, 5000));
	timer(ITIMER_REAL, 30, 0);
	FD_ZERO(&set);
	FD_SET(u[1], &set);
	T(select(u[1] + 1, &set, NULL, NULL, &tv));
	timer(ITIMER_REAL, 30, 0);
	T(epoll_wait(e, &ev, 1, 5000));
	/* With SA_RESTART, these still end: they have time-outs or are waits for events. */
	handle(SIGALRM, on_alarm, SA_RESTART);
	timer(ITIMER_REAL, 30, 0);
	T(poll(&p, 1, 5000));
	timer(ITIMER_REAL, 30, 0);
	T(epoll_wait(e, &ev, 1, 5000));
	must(setsockopt(u[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_usec = 200000 },
			sizeof(struct timeval)));
	timer(ITIMER_REAL, 30, 0);
	T(recv(u[1], b, 8, 0));
	must(setsockopt(u[1], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0 }, sizeof(struct timeval)));
	timer(ITIMER_REAL, 0, 0);
	must(close(e));
	must(close(l));
}

/* The processor's time passes while programs work, on whichever side. */
static void profiled(void)
{
	double start = seconds();

	alarms = 0;
	handle(SIGPROF, on_alarm, SA_RESTART);
	timer(ITIMER_PROF, 10, 10);
	while (seconds() - start < 10 && alarms < 5)
		must(send(u[0], "x", 1, MSG_DONTWAIT) < 0 && errno != EAGAIN ? -1 : 0),
		recv(u[1], &(char){ 0 }, 1, MSG_DONTWAIT);
	timer(ITIMER_PROF, 0, 0);
	say("profiled: %d", alarms >= 5);
	while (recv(u[1], &(char){ 0 }, 1, MSG_DONTWAIT) >= 0)
		;
}

/* ---- signalfd ---- */

static void signal_descriptor(void)
{
	struct pollfd p[2] = { { .fd = u[1], .events = POLLIN }, { .events = POLLIN } };
	struct signalfd_siginfo info;
	struct epoll_event ev = { .events = EPOLLIN };
	sigset_t set, old;
	int s, e;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigaddset(&set, SIGIO);
	must(sigprocmask(SIG_BLOCK, &set, &old));
	s = must(signalfd(-1, &set, SFD_CLOEXEC));
	p[1].fd = s;
	e = must(epoll_create1(0));
	ev.data.u32 = 1;
	must(epoll_ctl(e, EPOLL_CTL_ADD, u[1], &ev));
	ev.data.u32 = 2;
	must(epoll_ctl(e, EPOLL_CTL_ADD, s, &ev));
	timer(ITIMER_REAL, 30, 0);
	T(poll(p, 2, 5000));
	say("%s %s", events(p[0].revents), events(p[1].revents));
	T(epoll_wait(e, &ev, 1, 5000));
	N(ev.data.u32);
	T(read(s, &info, sizeof(info)) == sizeof(info));
	N(info.ssi_signo == SIGALRM);
	/* One that the node raises. */
	must(fcntl(u[1], F_SETOWN, getpid()));
	must(fcntl(u[1], F_SETFL, O_ASYNC));
	must(send(u[0], "abc", 3, 0));
	p[0].events = 0;
	T(poll(p, 2, 5000));
	T(read(s, &info, sizeof(info)) == sizeof(info));
	N(info.ssi_signo == SIGIO);
	must(fcntl(u[1], F_SETFL, 0));
	must(recv(u[1], &info, 8, 0));
	must(close(s));
	must(close(e));
	must(sigprocmask(SIG_SETMASK, &old, NULL));
}

/* ---- masks ---- */

static void masks(void)
{
	struct pollfd p = { .fd = u[1], .events = POLLIN };
	struct timespec ts = { .tv_sec = 5 };
	struct epoll_event ev = { .events = EPOLLIN };
	sigset_t block, none, old, now;
	int e = must(epoll_create1(0));
	fd_set set;

	must(epoll_ctl(e, EPOLL_CTL_ADD, u[1], &ev));
	handle(SIGUSR1, on_usr1, SA_RESTART);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	must(sigprocmask(SIG_BLOCK, &block, &old));
	for (int i = 0; i < 3; i++) {
		usr1 = 0;
		raise(SIGUSR1);		/* pending, let in by the mask */
		if (i == 0) {
			T(ppoll(&p, 1, &ts, &none));
		} else if (i == 1) {
			FD_ZERO(&set);
			FD_SET(u[1], &set);
			T(pselect(u[1] + 1, &set, NULL, NULL, &ts, &none));
		} else {
			T(epoll_pwait(e, &ev, 1, 5000, &none));
		}
		N(usr1);
		must(sigprocmask(SIG_SETMASK, NULL, &now));
		N(sigismember(&now, SIGUSR1));
	}
	/* Ready and pending at once: ready wins, the signal stays. */
	must(send(u[0], "x", 1, 0));
	usr1 = 0;
	raise(SIGUSR1);
	T(ppoll(&p, 1, &ts, &none));
	N(usr1);
	T(epoll_pwait(e, &ev, 1, 5000, &none));
	N(usr1);
	must(recv(u[1], &(char){ 0 }, 1, 0));
	must(sigprocmask(SIG_SETMASK, &old, NULL));
	/* Blocked during the call only. */
	usr1 = 0;
	ts = (struct timespec){ .tv_nsec = 50000000 };
	timer(ITIMER_REAL, 0, 0);
	handle(SIGALRM, on_alarm, 0);
	alarms = 0;
	timer(ITIMER_REAL, 10, 0);
	sigaddset(&block, SIGALRM);
	T(ppoll(&p, 1, &ts, &block));
	N(alarms);
	must(close(e));
}

/* ---- stacks and jumps ---- */

static void jumps(void)
{
	stack_t stack = { .ss_sp = alt, .ss_size = sizeof(alt) }, now;
	struct pollfd p[2] = { { .fd = u[1], .events = POLLIN }, { .fd = 0 } };
	struct epoll_event ev = { .events = EPOLLIN };
	int pipes[2], e = must(epoll_create1(0)), l = listener(AF_INET, 1);
	volatile int turn = 0;
	struct mmsghdr mm = { 0 };
	struct iovec iov;
	char b[8];

	must(pipe(pipes));
	p[1] = (struct pollfd){ .fd = pipes[0], .events = POLLIN };
	must(epoll_ctl(e, EPOLL_CTL_ADD, u[1], &ev));
	must(epoll_ctl(e, EPOLL_CTL_ADD, pipes[0], &ev));
	must(sigaltstack(&stack, NULL));
	handle(SIGALRM, on_alarm, SA_ONSTACK);
	timer(ITIMER_REAL, 10, 0);
	T(recv(u[1], b, 8, 0));
	N(on_alt);
	handle(SIGALRM, on_jump, SA_ONSTACK);
	iov = (struct iovec){ b, 8 };
	mm.msg_hdr.msg_iov = &iov;
	mm.msg_hdr.msg_iovlen = 1;
	if (sigsetjmp(back, 1))
		turn++;
	if (turn < 21) {
		timer(ITIMER_REAL, 5, 0);
		switch (turn % 7) {
		case 0:
			recv(u[1], b, 8, 0);
			break;
		case 1:
			poll(p, 2, -1);
			break;
		case 2:
			epoll_wait(e, &ev, 1, -1);
			break;
		case 3:
			accept(l, NULL, NULL);
			break;
		case 4:
			read(t[0], b, 8);
			break;
		case 5:
			recvmmsg(u[1], &mm, 1, 0, NULL);
			break;
		default:
			read(pipes[0], b, 8);
		}
		say("not reached");
	}
	N(turn);
	must(sigaltstack(NULL, &now));
	N(now.ss_flags & SS_ONSTACK);
	/* All of them work as before. */
	must(send(u[0], "ok", 2, 0));
	T(poll(p, 2, 1000));
	T(epoll_wait(e, &ev, 1, 1000));
	T(recv(u[1], b, 8, 0));
	must(send(t[1], "ok", 2, 0));
	T(read(t[0], b, 8));
	stack.ss_flags = SS_DISABLE;
	must(sigaltstack(&stack, NULL));
}

int main(void)
{
	udp_pair(AF_INET, u);
	tcp_pair(AF_INET, t);
	restarted();
	interrupted();
	profiled();
	signal_descriptor();
	masks();
	jumps();
	return 0;
}
