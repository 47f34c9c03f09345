// SPDX-License-Identifier: GPL-2.0
/* splice() at an urgent byte, while one comes, with a limit of time, from an empty pipe into what can't be spliced into, and from a file. */
#include "oracle.h"

static int a, b, p[2];

static void pair(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int l = must(socket(AF_INET, SOCK_STREAM, 0));

	must(bind(l, (void *)&at, sizeof(at)));
	must(listen(l, 1));
	must(getsockname(l, (void *)&at, &len));
	a = must(socket(AF_INET, SOCK_STREAM, 0));
	must(connect(a, (void *)&at, sizeof(at)));
	b = must(accept(l, NULL, NULL));
	close(l);
	must(pipe(p));
}

static void done(void)
{
	close(a);
	close(b);
	close(p[0]);
	close(p[1]);
}

static void *later(void *arg)
{
	usleep(100000);
	must(send(a, "!", 1, arg ? MSG_OOB : 0));
	return NULL;
}

static void on_alarm(int sig)
{
	(void)sig;
}

#define SPLICE(flags) T(splice(b, NULL, p[1], NULL, 100, flags))

/* A file has a position, which may be the program's variable. */
static void from_file(void)
{
	int fd = must(open("/proc/sys/net/ipv4/ip_default_ttl", O_RDONLY));
	char buf[16] = "";
	loff_t at = 1;

	T(splice(fd, &at, p[1], NULL, 1, 0));
	N(at);
	T(splice(fd, NULL, p[1], NULL, 100, 0));
	N(lseek(fd, 0, SEEK_CUR));
	T(splice(fd, NULL, p[1], NULL, 100, 0));
	T(splice(fd, &at, p[1], NULL, 100, 0));
	N(at);
	at = -1;
	T(splice(fd, &at, p[1], NULL, 1, 0));
	T(splice(fd, (loff_t *)8, p[1], NULL, 1, 0));
	at = 0;
	T(splice(fd, &at, p[1], &at, 1, 0));
	T(splice(fd, &at, b, NULL, 1, 0));
	T(read(p[0], buf, sizeof(buf)));
	say("%s", buf);
	close(fd);
}

int main(void)
{
	struct timeval tv = { .tv_usec = 100000 };
	char buf[16];
	pthread_t t;
	int on = 1, fd;

	alarm(50);
	pair();
	must(send(a, "!", 1, MSG_OOB));
	wait_for(b, POLLPRI);
	SPLICE(0);
	SPLICE(SPLICE_F_NONBLOCK);
	must(send(a, "abc", 3, 0));
	usleep(50000);
	SPLICE(0);
	T(recv(b, buf, 16, MSG_OOB));
	SPLICE(0);
	T(recv(b, buf, 16, 0));
	done();

	pair();
	must(send(a, "abc!", 4, MSG_OOB));
	usleep(50000);
	SPLICE(0);
	SPLICE(0);
	must(setsockopt(b, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)));
	SPLICE(0);
	done();

	for (int urgent = 0; urgent < 2; urgent++) {
		pair();
		must(pthread_create(&t, NULL, later, urgent ? &on : NULL));
		SPLICE(0);
		pthread_join(t, NULL);
		done();
	}

	pair();
	must(setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	SPLICE(0);
	must(fcntl(b, F_SETFL, O_NONBLOCK));
	SPLICE(0);
	must(fcntl(b, F_SETFL, 0));
	tv.tv_usec = 0;
	must(setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_alarm }, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 100000 }, NULL);
	SPLICE(0);
	signal(SIGALRM, SIG_DFL);
	alarm(50);
	shutdown(a, SHUT_WR);
	SPLICE(0);
	done();

	pair();
	fd = must(epoll_create1(0));
	T(splice(p[0], NULL, fd, NULL, 10, 0));
	fd = must(eventfd(0, 0));
	T(splice(p[0], NULL, fd, NULL, 10, 0));
	fd = must(socket(AF_INET, SOCK_DGRAM, 0));
	T(splice(p[0], NULL, fd, NULL, 10, SPLICE_F_NONBLOCK));
	T(splice(p[0], NULL, b, NULL, 10, SPLICE_F_NONBLOCK));
	fd = open("/proc/sys/net/ipv4/ip_default_ttl", O_RDONLY);
	T(splice(p[0], NULL, fd, NULL, 10, SPLICE_F_NONBLOCK));
	fd = open("/proc/sys/net/ipv4/ip_default_ttl", O_WRONLY);
	T(splice(p[0], NULL, fd, NULL, 10, SPLICE_F_NONBLOCK));
	must(write(p[1], "64\n", 3));
	T(splice(p[0], NULL, fd, NULL, 10, 0));
	T(splice(fd, NULL, p[1], NULL, 10, 0));
	done();

	pair();
	from_file();
	T(splice(must(eventfd(1, 0)), NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	T(splice(must(epoll_create1(0)), NULL, p[1], NULL, 10, SPLICE_F_NONBLOCK));
	done();
	return 0;
}
