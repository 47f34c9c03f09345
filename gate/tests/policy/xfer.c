// SPDX-License-Identifier: GPL-2.0
/* xfer.c - sendfile, splice and descriptor passing across the border */
#include "t.h"

#define SIZE	(3 << 20)

static int s[2];
static uint32_t sum;
static long total;

static void *reader(void *arg)
{
	unsigned char buf[10000];
	ssize_t n, i;

	(void)arg;
	while ((n = read(s[1], buf, sizeof(buf))) > 0) {
		for (i = 0; i < n; i++)
			sum = sum * 31 + buf[i];
		total += n;
	}
	return NULL;
}

static long pass(int via, int fd)
{
	char c = 'x', ctl[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl,
			    .msg_controllen = sizeof(ctl) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(int));
	return sendmsg(via, &m, 0);
}

int main(void)
{
	int file = MUST(memfd_create("xfer", 0)), p[2], i, sp[2];
	unsigned char *data = malloc(SIZE);
	uint32_t want = 0;
	pthread_t t;
	off_t off;
	char buf[100] = "";
	long n, left;

	srand(1);
	for (i = 0; i < SIZE; i++) {
		data[i] = rand();
		want = want * 31 + data[i];
	}
	MUST(write(file, data, SIZE));
	tcp_pair(s);
	MUST(pipe(p));
	pthread_create(&t, NULL, reader, NULL);

	off = 0;
	T(sendfile(s[0], file, &off, 1000000));
	T(off);
	T(lseek(file, 1000000, SEEK_SET));
	T(sendfile(s[0], file, NULL, SIZE));
	T(lseek(file, 0, SEEK_CUR));
	T(sendfile(s[0], file, NULL, SIZE));
	T(sendfile(s[0], p[0], NULL, 10));
	T(sendfile(file, s[0], NULL, 10));
	T(sendfile(s[0], s[0], NULL, 10));
	T(sendfile(s[0], 99, NULL, 10));
	T(sendfile(s[0], file, (void *)8, 10));
	shutdown(s[0], SHUT_WR);
	pthread_join(t, NULL);
	printf("%ld bytes, sum %s\n", total, sum == want ? "right" : "wrong");
	close(s[0]);
	close(s[1]);

	/* pipe -> socket -> pipe */
	tcp_pair(s);
	total = 0;
	sum = 0;
	pthread_create(&t, NULL, reader, NULL);
	for (left = SIZE; left; left -= n) {
		long m = left < 50000 ? left : 50000, k;

		n = MUST(write(p[1], data + SIZE - left, m));
		for (m = n; m; m -= k)
			k = MUST(splice(p[0], NULL, s[0], NULL, m, SPLICE_F_MORE));
	}
	shutdown(s[0], SHUT_WR);
	pthread_join(t, NULL);
	printf("%ld bytes spliced out, sum %s\n", total, sum == want ? "right" : "wrong");
	close(s[0]);
	close(s[1]);

	tcp_pair(s);
	MUST(write(s[0], "hello, pipe", 11));
	T(splice(s[1], NULL, p[1], NULL, 5, 0));
	T(splice(s[1], NULL, p[1], NULL, 100, 0));
	fcntl(s[1], F_SETFL, O_NONBLOCK);
	T(splice(s[1], NULL, p[1], NULL, 100, 0));
	T(read(p[0], buf, sizeof(buf)));
	printf("%s\n", buf);
	T(splice(p[0], NULL, s[1], NULL, 100, SPLICE_F_NONBLOCK));
	T(splice(s[0], NULL, s[1], NULL, 100, 0));
	T(splice(s[0], NULL, file, NULL, 100, 0));
	off = 0;
	T(splice(s[0], NULL, p[1], &off, 100, 0));
	T(splice(s[0], &off, p[1], NULL, 100, 0));
	T(splice(s[0], NULL, 99, NULL, 100, 0));
	T(tee(s[0], p[1], 10, 0));
	T(tee(p[0], s[0], 10, 0));
	T(copy_file_range(file, NULL, s[0], NULL, 10, 0));
	T(vmsplice(s[0], &(struct iovec){ buf, 1 }, 1, 0));
	shutdown(s[0], SHUT_WR);
	T(splice(s[1], NULL, p[1], NULL, 100, 0));
	close(s[0]);
	signal(SIGPIPE, SIG_IGN);
	MUST(write(p[1], "abc", 3));
	splice(p[0], NULL, s[1], NULL, 3, 0);
	usleep(10000);
	MUST(write(p[1], "abc", 3));
	T(splice(p[0], NULL, s[1], NULL, 3, 0));

	socketpair(AF_UNIX, SOCK_STREAM, 0, sp);
	T(pass(sp[0], p[0]));
	T(pass(sp[0], 99));
	T(syscall(SYS_io_uring_setup, 0, NULL) < 0);
	return 0;
}
