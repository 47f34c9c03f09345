// SPDX-License-Identifier: GPL-2.0
/* wait.c - poll, select and epoll over descriptors of both kinds */
#include "t.h"

static int u[2], pipefd[2], ep;
static void *volatile bad = (void *)8;

static void show_poll(const char *what, struct pollfd *p, int n, int ms)
{
	double t = now();
	int i, ret = poll(p, n, ms);

	t = now() - t;
	printf("%s: %d", what, ret);
	for (i = 0; i < n; i++)
		printf(" %x", p[i].revents);
	printf(" %s\n", ret == 0 && ms > 0 ? t > ms / 1e3 - 0.001 && t < ms / 1e3 + 0.5 ?
	       "in time" : "NOT in time" : "");
	fflush(stdout);
}

static int cmp(const void *a, const void *b)
{
	const struct epoll_event *x = a, *y = b;

	return x->data.u64 < y->data.u64 ? -1 : x->data.u64 > y->data.u64;
}

static int show_epoll(const char *what, int fd, int max, int ms)
{
	struct epoll_event ev[16];
	double t = now();
	int i, n = epoll_wait(fd, ev, max, ms);

	t = now() - t;
	printf("%s: %d", what, n);
	if (n > 0)
		qsort(ev, n, sizeof(ev[0]), cmp);
	for (i = 0; i < n; i++)
		printf(" %llx:%x", (unsigned long long)ev[i].data.u64, ev[i].events);
	printf(" %s\n", n == 0 && ms > 0 ? t > ms / 1e3 - 0.001 && t < ms / 1e3 + 0.5 ?
	       "in time" : "NOT in time" : "");
	fflush(stdout);
	return n;
}

static int add(int epfd, int op, int fd, unsigned int events, uint64_t data)
{
	struct epoll_event ev = { .events = events, .data.u64 = data };

	return epoll_ctl(epfd, op, fd, &ev) ? -errno : 0;
}

static void *later(void *what)
{
	usleep(30000);
	if (what == (void *)1)
		(void)!write(pipefd[1], "p", 1);
	else if (what == (void *)2)
		send(u[0], "u", 1, 0);
	else if (what == (void *)3)
		add(ep, EPOLL_CTL_ADD, u[1], EPOLLIN, 0x77);
	else if (what == (void *)4)
		add(ep, EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 0x88);
	return NULL;
}

static pthread_t soon(long what)
{
	pthread_t t;

	pthread_create(&t, NULL, later, (void *)what);
	return t;
}

static void drain(void)
{
	char buf[64];

	fcntl(pipefd[0], F_SETFL, O_NONBLOCK);
	fcntl(u[1], F_SETFL, O_NONBLOCK);
	while (read(pipefd[0], buf, sizeof(buf)) > 0)
		;
	while (recv(u[1], buf, sizeof(buf), 0) > 0)
		;
}

static void polls(void)
{
	struct pollfd p[3] = { { .fd = pipefd[0], .events = POLLIN },
			       { .fd = u[1], .events = POLLIN },
			       { .fd = -1, .events = POLLIN } };
	pthread_t t;

	show_poll("nothing", p, 3, 0);
	show_poll("nothing", p, 3, 60);
	MUST(write(pipefd[1], "p", 1));
	show_poll("pipe", p, 3, 1000);
	show_poll("pipe again", p, 3, -1);
	MUST(send(u[0], "u", 1, 0));
	show_poll("both", p, 3, 1000);
	drain();
	show_poll("drained", p, 3, 20);
	t = soon(1);
	show_poll("pipe later", p, 3, 2000);
	pthread_join(t, NULL);
	drain();
	show_poll("drained", p, 3, 20);
	t = soon(2);
	show_poll("udp later", p, 3, 2000);
	pthread_join(t, NULL);
	drain();
	t = soon(1);
	show_poll("pipe later, forever", p, 3, -1);
	pthread_join(t, NULL);
	drain();
	p[2].fd = 777;
	show_poll("bad fd", p, 3, 1000);
	p[2].fd = pipefd[1];
	p[2].events = POLLOUT;
	show_poll("pipe out", p, 3, 1000);
	p[2].fd = u[0];
	show_poll("udp out", p, 3, 1000);
	p[2].fd = open("/dev/null", O_RDONLY);
	p[2].events = POLLIN;
	show_poll("null", p, 3, 1000);
	close(p[2].fd);
	T(poll(bad, 2, 0));
}

static void set(fd_set *in)
{
	FD_ZERO(in);
	FD_SET(pipefd[0], in);
	FD_SET(u[1], in);
}

static void selects(void)
{
	struct timeval tv = { 0, 30000 };
	fd_set in, out;
	pthread_t t;
	int max = (pipefd[0] > u[1] ? pipefd[0] : u[1]) + 1;
	double start;

	set(&in);
	start = now();
	T(select(max, &in, NULL, NULL, &tv));
	printf("%d %ld %d\n", now() - start > 0.029 && now() - start < 0.08, tv.tv_usec,
	       FD_ISSET(u[1], &in));
	set(&in);
	t = soon(1);
	tv.tv_sec = 5;
	T(select(max, &in, NULL, NULL, &tv));
	printf("%d %d %ld\n", FD_ISSET(pipefd[0], &in), FD_ISSET(u[1], &in), tv.tv_sec);
	pthread_join(t, NULL);
	drain();
	set(&in);
	t = soon(2);
	T(select(max, &in, NULL, NULL, NULL));
	printf("%d %d\n", FD_ISSET(pipefd[0], &in), FD_ISSET(u[1], &in));
	pthread_join(t, NULL);
	drain();
	set(&in);
	FD_ZERO(&out);
	FD_SET(pipefd[1], &out);
	FD_SET(u[0], &out);
	T(select(max > u[0] ? max : u[0] + 1, &in, &out, NULL, NULL));
	printf("%d %d\n", FD_ISSET(pipefd[1], &out), FD_ISSET(u[0], &out));
	/* The host looks at no number past its table of descriptors, which has to reach there. */
	MUST(dup2(0, 100));
	close(100);
	set(&in);
	FD_SET(100, &in);
	T(select(101, &in, NULL, NULL, NULL));
	set(&in);
	T(pselect(max, &in, NULL, NULL, &(struct timespec){ 0, 10000000 }, NULL));
	set(&in);
	tv = (struct timeval){ -1, 0 };
	T(select(max, &in, NULL, NULL, &tv));
}

static void epolls(void)
{
	int ev = eventfd(0, EFD_NONBLOCK), tfd = timerfd_create(CLOCK_MONOTONIC, 0), outer, file;
	struct itimerspec its = { .it_value.tv_nsec = 40000000 };
	uint64_t one = 1;
	int sp[2], copy;
	pthread_t t;
	char c;

	ep = MUST(epoll_create1(0));
	socketpair(AF_UNIX, SOCK_STREAM, 0, sp);
	T(add(ep, EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 0xa1));
	T(add(ep, EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 0xa1));
	show_epoll("host only", ep, 16, 20);
	T(add(ep, EPOLL_CTL_ADD, u[1], EPOLLIN, 0xb2));
	T(add(ep, EPOLL_CTL_ADD, u[1], EPOLLIN, 0xb2));
	T(add(ep, EPOLL_CTL_MOD, ev, EPOLLIN, 0xb2));
	T(add(ep, EPOLL_CTL_DEL, ev, EPOLLIN, 0xb2));
	T(add(ep, EPOLL_CTL_ADD, ep, EPOLLIN, 1));
	T(add(ep, EPOLL_CTL_ADD, 888, EPOLLIN, 1));
	T(add(888, EPOLL_CTL_ADD, ep, EPOLLIN, 1));
	T(add(pipefd[0], EPOLL_CTL_ADD, u[1], EPOLLIN, 1));
	T(add(u[1], EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 1));
	file = open("/etc/hostname", O_RDONLY);
	T(add(ep, EPOLL_CTL_ADD, file, EPOLLIN, 1));
	show_epoll("both, nothing", ep, 16, 0);
	show_epoll("both, nothing", ep, 16, 50);
	MUST(write(pipefd[1], "p", 1));
	show_epoll("pipe", ep, 16, 0);
	show_epoll("pipe", ep, 16, 1000);
	MUST(send(u[0], "u", 1, 0));
	usleep(1000);
	show_epoll("both", ep, 16, 1000);
	show_epoll("both, max 1", ep, 1, 0) == 1 ? 0 : puts("?");
	drain();
	show_epoll("drained", ep, 16, 20);
	t = soon(1);
	show_epoll("pipe later", ep, 16, 2000);
	pthread_join(t, NULL);
	show_epoll("still there", ep, 16, 2000);
	drain();
	t = soon(2);
	show_epoll("udp later", ep, 16, 2000);
	pthread_join(t, NULL);
	drain();
	t = soon(1);
	show_epoll("pipe later, forever", ep, 16, -1);
	pthread_join(t, NULL);
	drain();

	puts("edge");
	T(add(ep, EPOLL_CTL_MOD, pipefd[0], EPOLLIN | EPOLLET, 0xa3));
	show_epoll("none", ep, 16, 10);
	MUST(write(pipefd[1], "p", 1));
	show_epoll("first", ep, 16, 1000);
	show_epoll("no more", ep, 16, 10);
	MUST(write(pipefd[1], "p", 1));
	show_epoll("second", ep, 16, 1000);
	drain();

	puts("one-shot");
	T(add(ep, EPOLL_CTL_MOD, pipefd[0], EPOLLIN | EPOLLONESHOT, 0xa4));
	MUST(write(pipefd[1], "p", 1));
	show_epoll("first", ep, 16, 1000);
	show_epoll("no more", ep, 16, 10);
	T(add(ep, EPOLL_CTL_MOD, pipefd[0], EPOLLIN | EPOLLONESHOT, 0xa5));
	show_epoll("armed again", ep, 16, 1000);
	drain();
	T(add(ep, EPOLL_CTL_DEL, pipefd[0], 0, 0));

	puts("kinds");
	T(add(ep, EPOLL_CTL_ADD, ev, EPOLLIN, 0xe1));
	T(add(ep, EPOLL_CTL_ADD, tfd, EPOLLIN, 0xe2));
	T(add(ep, EPOLL_CTL_ADD, sp[0], EPOLLIN | EPOLLRDHUP, 0xe3));
	MUST(write(ev, &one, 8));
	show_epoll("eventfd", ep, 16, 1000);
	MUST(read(ev, &one, 8));
	timerfd_settime(tfd, 0, &its, NULL);
	show_epoll("timerfd", ep, 16, 1000);
	MUST(read(tfd, &one, 8));
	MUST(write(sp[1], "s", 1));
	show_epoll("unix", ep, 16, 1000);
	MUST(read(sp[0], &c, 1));
	show_epoll("nothing", ep, 16, 10);
	close(sp[1]);
	show_epoll("unix hup", ep, 16, 1000);
	close(sp[0]);
	show_epoll("unix closed", ep, 16, 10);

	puts("nested and duplicated");
	outer = MUST(epoll_create1(0));
	T(add(outer, EPOLL_CTL_ADD, ep, EPOLLIN, 0x0e));
	show_epoll("outer none", outer, 16, 10);
	MUST(write(ev, &one, 8));
	show_epoll("outer host", outer, 16, 1000);
	MUST(read(ev, &one, 8));
	show_epoll("inner none", ep, 16, 10);
	MUST(send(u[0], "u", 1, 0));
	show_epoll("outer node", outer, 16, 1000);
	drain();
	copy = dup(ep);
	T(add(copy, EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 0xc1));
	MUST(write(pipefd[1], "p", 1));
	show_epoll("first number", ep, 16, 1000);
	close(ep);
	ep = copy;
	show_epoll("second number", ep, 16, 1000);
	drain();
	t = soon(1);
	show_epoll("second number, later", ep, 16, 1000);
	pthread_join(t, NULL);
	drain();
	show_epoll("drained", ep, 16, 10);
	close(ep);

	puts("growing while waited for");
	ep = epoll_create1(0);
	t = soon(3);
	MUST(send(u[0], "u", 1, 0));
	show_epoll("empty, then node", ep, 16, 2000);
	pthread_join(t, NULL);
	drain();
	t = soon(4);
	MUST(write(pipefd[1], "p", 1));
	show_epoll("node, then host", ep, 16, 2000);
	pthread_join(t, NULL);
	close(ep);
	ep = epoll_create1(0);
	drain();
	T(add(ep, EPOLL_CTL_ADD, pipefd[0], EPOLLIN, 0xa1));
	t = soon(3);
	MUST(send(u[0], "u", 1, 0));
	show_epoll("host, then node", ep, 16, 2000);
	pthread_join(t, NULL);
	drain();

	puts("in poll");
	struct pollfd p[2] = { { .fd = ep, .events = POLLIN }, { .fd = u[0], .events = POLLIN } };

	show_poll("none", p, 2, 20);
	t = soon(1);
	show_poll("host in epoll", p, 2, 2000);
	pthread_join(t, NULL);
	show_epoll("inner", ep, 16, 0);
	drain();
	show_epoll("inner", ep, 16, 0);
	t = soon(2);
	show_poll("node in epoll", p, 2, 2000);
	pthread_join(t, NULL);
	drain();
	T(epoll_wait(ep, bad, 4, 0));
	T(epoll_wait(ep, bad, 0, 0));
	T(epoll_wait(u[0], bad, 4, 0));
	T(epoll_wait(pipefd[0], bad, 4, 0));
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void signals(void)
{
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval it = { .it_value.tv_usec = 30000 };
	struct pollfd p[2] = { { .fd = pipefd[0], .events = POLLIN },
			       { .fd = u[1], .events = POLLIN } };
	sigset_t none, block;
	struct epoll_event ev;
	fd_set in;

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	T(poll(p, 2, 2000));
	setitimer(ITIMER_REAL, &it, NULL);
	set(&in);
	T(select(100, &in, NULL, NULL, NULL));
	setitimer(ITIMER_REAL, &it, NULL);
	T(epoll_wait(ep, &ev, 1, 2000));

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGALRM);
	sigprocmask(SIG_BLOCK, &block, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
	T(poll(p, 2, 60));
	T(ppoll(p, 2, NULL, &none));
	setitimer(ITIMER_REAL, &it, NULL);
	T(ppoll(p + 1, 1, NULL, &none));
	setitimer(ITIMER_REAL, &it, NULL);
	T(epoll_pwait(ep, &ev, 1, 2000, &none));
	setitimer(ITIMER_REAL, &it, NULL);
	set(&in);
	T(pselect(100, &in, NULL, NULL, NULL, &none));
}

int main(void)
{
	udp_pair(u);
	MUST(pipe(pipefd));
	polls();
	selects();
	epolls();
	if (!getenv("NO_SIGNALS"))
		signals();
	return 0;
}
