/* SPDX-License-Identifier: GPL-2.0 */
/* t.h - printing results so that the host's and the node's can be compared */
#ifndef T_H
#define T_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define T(expr)								\
	({								\
		errno = 0;						\
		long t_ = (long)(expr);					\
		if (t_ < 0)						\
			printf("%s = %ld %s\n", #expr, t_, strerrorname_np(errno)); \
		else							\
			printf("%s = %ld\n", #expr, t_);		\
		fflush(stdout);						\
		t_;							\
	})

#define MUST(expr)							\
	({								\
		long t_ = (long)(expr);					\
		if (t_ < 0) {						\
			printf("%d: %s: %s\n", __LINE__, #expr, strerror(errno)); \
			exit(1);					\
		}							\
		t_;							\
	})

static inline double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static inline struct sockaddr_in lo(int port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

/* A connected pair of TCP sockets on loopback. */
static inline void tcp_pair(int fd[2])
{
	struct sockaddr_in a = lo(0);
	socklen_t len = sizeof(a);
	int l = MUST(socket(AF_INET, SOCK_STREAM, 0));

	MUST(bind(l, (struct sockaddr *)&a, sizeof(a)));
	MUST(listen(l, 1));
	MUST(getsockname(l, (struct sockaddr *)&a, &len));
	fd[0] = MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(fd[0], (struct sockaddr *)&a, sizeof(a)));
	fd[1] = MUST(accept(l, NULL, NULL));
	close(l);
}

/* Two UDP sockets connected to each other. */
static inline void udp_pair(int fd[2])
{
	struct sockaddr_in a = lo(0);
	socklen_t len = sizeof(a);
	int i;

	for (i = 0; i < 2; i++) {
		struct sockaddr_in any = lo(0);

		fd[i] = MUST(socket(AF_INET, SOCK_DGRAM, 0));
		MUST(bind(fd[i], (struct sockaddr *)&any, sizeof(any)));
	}
	for (i = 0; i < 2; i++) {
		len = sizeof(a);
		MUST(getsockname(fd[!i], (struct sockaddr *)&a, &len));
		MUST(connect(fd[i], (struct sockaddr *)&a, sizeof(a)));
	}
}

#endif
