// SPDX-License-Identifier: GPL-2.0
/*
 * race.c - threads that make and close descriptors of both kinds at once: each
 * number must be what its maker says, and none may be left over
 */
#include "t.h"

#define ROUNDS	1500

static volatile int bad, stop;
static int listener;
static struct sockaddr_in addr;

static void is(int fd, int type, const char *what)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || (int)(st.st_mode & S_IFMT) != type) {
		printf("%s: %d is not what it was (%s)\n", what, fd, strerror(errno));
		bad = 1;
	}
}

static void *maker(void *arg)
{
	unsigned int seed = (long)arg;
	int i, a, b, p[2], to;

	for (i = 0; i < ROUNDS && !bad; i++) {
		switch (rand_r(&seed) % 6) {
		case 0:
			a = socket(AF_INET, SOCK_DGRAM, 0);
			is(a, S_IFSOCK, "socket");
			close(a);
			break;
		case 1:
			pipe(p);
			is(p[0], S_IFIFO, "pipe");
			is(p[1], S_IFIFO, "pipe");
			close(p[0]);
			close(p[1]);
			break;
		case 2:
			a = socket(AF_INET, SOCK_STREAM, 0);
			b = dup(a);
			is(a, S_IFSOCK, "dup");
			close(a);
			is(b, S_IFSOCK, "dup");
			close(b);
			break;
		case 3:
			a = open("/dev/null", O_RDONLY);
			b = socket(AF_INET6, SOCK_DGRAM, 0);
			to = 200 + (long)arg;
			dup2(a, to);
			is(to, S_IFCHR, "dup2 host");
			dup2(b, to);
			is(to, S_IFSOCK, "dup2 node");
			dup2(a, to);
			is(to, S_IFCHR, "dup2 host again");
			close(to);
			close(a);
			close(b);
			break;
		case 4:
			a = epoll_create1(0);
			b = fcntl(a, F_DUPFD_CLOEXEC, 300);
			close(a);
			close(b);
			break;
		case 5:
			a = socket(AF_INET, SOCK_STREAM, 0);
			if (connect(a, (struct sockaddr *)&addr, sizeof(addr)))
				printf("connect: %s\n", strerror(errno)), bad = 1;
			close(a);
			break;
		}
	}
	return NULL;
}

static void *acceptor(void *arg)
{
	int fd;

	(void)arg;
	while (!stop) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0)
			break;
		is(fd, S_IFSOCK, "accept");
		close(fd);
	}
	return NULL;
}

int main(void)
{
	socklen_t len = sizeof(addr);
	pthread_t t[4], acc[2];
	int i, fd;

	addr = lo(0);
	listener = MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(listen(listener, 100));
	MUST(getsockname(listener, (struct sockaddr *)&addr, &len));
	for (i = 0; i < 2; i++)
		pthread_create(&acc[i], NULL, acceptor, NULL);
	for (i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, maker, (void *)(long)i);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	stop = 1;
	shutdown(listener, SHUT_RDWR);
	for (i = 0; i < 2; i++)
		pthread_join(acc[i], NULL);
	close(listener);
	for (fd = 3; fd < 512; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			printf("%d is left over\n", fd);
	T(socket(AF_INET, SOCK_DGRAM, 0));
	return bad;
}
