// SPDX-License-Identifier: GPL-2.0
/*
 * PR_SET_TSC: a program that may not read the time stamp counter gets SIGSEGV where it does, as it asked; its calls go on,
 * and so do other processes of the network.
 */
#include "oracle.h"
#include <setjmp.h>
#include <sys/prctl.h>

static sigjmp_buf back;

static void on_segv(int sig)
{
	siglongjmp(back, sig);
}

static const char *rdtsc(void)
{
	if (sigsetjmp(back, 1))
		return "SIGSEGV";
	asm volatile("rdtsc" : : : "rax", "rdx");
	return "read";
}

static int get(void)
{
	int how = -1;

	must(prctl(PR_GET_TSC, &how));
	return how;
}

/* All that looks at the time. */
static void calls(void)
{
	struct timeval limit = { 0, 100000 };
	struct itimerspec soon = { .it_value.tv_nsec = 50000000 };
	struct epoll_event ev = { .events = EPOLLIN };
	char data[32 << 10] = { 0 };
	uint64_t n;
	int pair[2], ep, timer, i;
	fd_set set;

	udp_pair(AF_INET, pair);
	must(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	for (i = 0; i < 3; i++)
		T(recv(pair[0], data, 1, 0));
	FD_ZERO(&set);
	FD_SET(pair[0], &set);
	T(select(pair[0] + 1, &set, NULL, NULL, &limit));
	ep = must(epoll_create1(0));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &ev));
	T(epoll_wait(ep, &ev, 1, 60));
	timer = must(timerfd_create(CLOCK_MONOTONIC, 0));
	must(epoll_ctl(ep, EPOLL_CTL_ADD, timer, &ev));
	must(timerfd_settime(timer, 0, &soon, NULL));
	T(epoll_wait(ep, &ev, 1, 2000));
	T(read(timer, &n, sizeof(n)));
	tcp_pair(AF_INET, pair);
	for (i = 0; i < 50; i++) {
		must(send(pair[i % 2], data, sizeof(data), 0));
		must(recv(pair[!(i % 2)], data, sizeof(data), MSG_WAITALL));
	}
	say("calls: ok");
}

int main(int argc, char **argv)
{
	int pair[2], s, i, ok = 0;
	char data[100];
	pid_t pid;

	signal(SIGSEGV, on_segv);
	if (argc > 1) {
		N(get());
		say("after exec: %s", rdtsc());
		/* Linux's own way to the time reads the counter, too. */
		must(prctl(PR_SET_TSC, PR_TSC_ENABLE));
		say("allowed: %s", rdtsc());
		return 0;
	}
	N(get());
	say("%s", rdtsc());
	udp_pair(AF_INET, pair);
	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		T(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
		N(get());
		say("%s", rdtsc());
		calls();
		say("%s", rdtsc());
		fflush(stdout);
		pid = must(fork());
		if (!pid) {
			N(get());
			calls();
			fflush(stdout);
			execl("/proc/self/exe", "again", "x", NULL);
			_exit(9);
		}
		must(waitpid(pid, &s, 0));
		say("%d", s);
		fflush(stdout);
		_exit(0);
	}
	/* Meanwhile, another's. */
	for (i = 0; i < 200; i++) {
		must(send(pair[0], data, sizeof(data), 0));
		ok += must(recv(pair[1], data, sizeof(data), 0)) == sizeof(data);
		sleep_ms(2);
	}
	must(waitpid(pid, &s, 0));
	say("%d, %d of 200", s, ok);
	N(get());
	return 0;
}
