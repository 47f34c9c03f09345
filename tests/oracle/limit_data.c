// SPDX-License-Identifier: GPL-2.0
/*
 * RLIMIT_DATA: what the program set is what it reads, and what it can have; what node and gate have does not count. A
 * process under a small one starts threads, waits for sockets and pipes, and starts programs.
 */
#define LIMIT	RLIMIT_DATA
#define PROT	(PROT_READ | PROT_WRITE)	/* what counts */
#include "limit.h"

#define STACK	(64ul << 10)
#define THREADS	40	/* at most */

static void *reads(void *arg)
{
	char c;

	return (void *)(long)read((int)(long)arg, &c, 1);
}

/* Threads of little memory of their own, each in a call of the network. */
static void threads(int count)
{
	pthread_t all[THREADS];
	int pair[2], i, made = 0, done = 0;
	pthread_attr_t attr;
	char data[THREADS];
	void *got;

	tcp_pair(AF_INET, pair);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	while (made < count && !pthread_create(&all[made], &attr, reads, (void *)(long)pair[0]))
		made++;
	must(send(pair[1], data, made, 0));
	for (i = 0; i < made; i++)
		done += !pthread_join(all[i], &got) && got == (void *)1;
	say("%d threads, %d have read", made, done);
}

static void waits(void)
{
	int pair[2], ends[2], ep = must(epoll_create1(0));
	struct epoll_event e = { .events = EPOLLIN };
	struct pollfd fds[2];

	tcp_pair(AF_INET6, pair);
	must(pipe(ends));
	T(epoll_ctl(ep, EPOLL_CTL_ADD, ends[0], &e));
	T(epoll_ctl(ep, EPOLL_CTL_ADD, pair[0], &e));
	T(epoll_wait(ep, &e, 1, 10));
	must(write(ends[1], "x", 1));
	T(epoll_wait(ep, &e, 1, 10000));
	fds[0] = (struct pollfd){ ends[0], POLLIN };
	fds[1] = (struct pollfd){ pair[0], POLLIN };
	T(poll(fds, 2, 10000));
}

static void limited(unsigned long bytes, int count, const char *what)
{
	struct rlimit r = { bytes, bytes };
	pid_t pid = must(fork());

	if (!pid) {
		T(setrlimit(RLIMIT_DATA, &r));
		show("set");
		waits();
		threads(count);
		fflush(stdout);
		execl("/proc/self/exe", "again", "x", NULL);
		_exit(9);
	}
	end(what, pid);
}

int main(int argc, char **argv)
{
	struct rlimit r = { 200 * MIB, 400 * MIB };
	pid_t pid;
	long n;

	(void)argv;
	if (argc > 1) {
		show("after exec");
		return 0;
	}
	fflush(stdout);
	limited(MIB, 8, "one MiB");
	limited(12 * MIB, THREADS, "twelve MiB");
	fflush(stdout);
	pid = must(fork());
	if (!pid) {
		T(setrlimit(RLIMIT_DATA, &r));
		r.rlim_cur = 500 * MIB;
		T(setrlimit(RLIMIT_DATA, &r));
		n = can_map();
		say("about %ld of 200 MiB", n > 190 && n <= 216 ? 200l : n);
		_exit(0);
	}
	end("200 MiB", pid);
	/* Another's, from outside of it. */
	pid = must(fork());
	if (!pid) {
		pause();
		_exit(0);
	}
	T(prlimit(pid, RLIMIT_DATA, &r, NULL));
	r.rlim_cur = 7;
	T(prlimit(pid, RLIMIT_DATA, &r, NULL));
	r.rlim_cur = r.rlim_max = 0;
	T(prlimit(pid, RLIMIT_DATA, NULL, &r));
	N(r.rlim_cur);
	N(r.rlim_max);
	must(kill(pid, SIGKILL));
	end("it", pid);
	show("the parent's");
	return 0;
}
