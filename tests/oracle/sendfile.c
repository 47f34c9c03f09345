// SPDX-License-Identifier: GPL-2.0
/* sendfile() and splice() between files, pipes and sockets. */
#include "oracle.h"
#include <sys/sendfile.h>

#define SIZE 100000

static unsigned char in[SIZE * 2];

static size_t collect(int fd, size_t want)
{
	size_t got = 0;
	ssize_t n;

	while (got < want && (n = recv(fd, in + got, want - got, 0)) > 0)
		got += n;
	return got;
}

/* A socket takes a part of it: the file's position is behind that part. */
static void not_all(int f)
{
	int p[2];
	ssize_t n, sent = 0;

	tcp_pair(AF_INET, p);
	nonblocking(p[0]);
	must(ftruncate(f, 32 << 20));
	must(lseek(f, 0, SEEK_SET));
	while ((n = sendfile(p[0], f, NULL, 32 << 20)) > 0)
		sent += n;
	say("a part %d, position %d", n < 0 && errno == EAGAIN && sent < 32 << 20,
	    lseek(f, 0, SEEK_CUR) == sent);
}

int main(void)
{
	static unsigned char data[SIZE];
	char name[] = "/tmp/oracle.XXXXXX";
	int f = must(mkstemp(name)), p[2], u[2], pipes[2], out;
	off_t offset = 100;
	loff_t loff = 5;

	unlink(name);
	for (int i = 0; i < SIZE; i++)
		data[i] = i * 7 + (i >> 9);
	need(write(f, data, SIZE) == SIZE);
	tcp_pair(AF_INET, p);
	udp_pair(AF_INET, u);
	must(pipe(pipes));

	must(lseek(f, 0, SEEK_SET));
	T(sendfile(p[0], f, NULL, 1000));
	say("file offset %ld", (long)lseek(f, 0, SEEK_CUR));
	T(collect(p[1], 1000));
	say("equal %d", !memcmp(in, data, 1000));
	T(sendfile(p[0], f, &offset, 2000));
	say("offset %ld, file offset %ld", (long)offset, (long)lseek(f, 0, SEEK_CUR));
	T(collect(p[1], 2000));
	say("equal %d", !memcmp(in, data + 100, 2000));
	offset = 0;
	T(sendfile(p[0], f, &offset, SIZE * 2));	/* as much as there is */
	T(collect(p[1], SIZE));
	say("equal %d", !memcmp(in, data, SIZE));
	offset = SIZE;
	T(sendfile(p[0], f, &offset, 10));
	offset = 0;
	T(sendfile(u[0], f, &offset, 500));
	T(recv(u[1], in, SIZE, 0));
	T(sendfile(p[0], f, NULL, 0));
	T(sendfile(f, p[0], NULL, 10));
	T(sendfile(p[0], p[1], NULL, 10));
	T(sendfile(-1, f, NULL, 10));
	T(sendfile(p[0], -1, NULL, 10));
	offset = -5;
	T(sendfile(p[0], f, &offset, 10));
	T(sendfile(p[0], f, (off_t *)8, 10));

	/* By way of a pipe, both directions. */
	T(splice(f, &loff, pipes[1], NULL, 3000, 0));
	T(splice(pipes[0], NULL, p[0], NULL, 3000, SPLICE_F_MORE));
	T(send(p[0], "", 0, 0));
	T(collect(p[1], 3000));
	say("equal %d", !memcmp(in, data + 5, 3000));
	must(write(p[0], data, 4000));
	need(wait_for(p[1], POLLIN));
	T(splice(p[1], NULL, pipes[1], NULL, 4000, 0));
	T(read(pipes[0], in, 4000));
	say("equal %d", !memcmp(in, data, 4000));
	nonblocking(p[1]);	/* SPLICE_F_NONBLOCK is about the pipe */
	T(splice(p[1], NULL, pipes[1], NULL, 4000, SPLICE_F_NONBLOCK));
	T(splice(p[1], NULL, p[0], NULL, 10, 0));
	T(splice(p[1], &loff, pipes[1], NULL, 10, 0));
	T(tee(p[1], pipes[1], 10, 0));
	must(shutdown(p[0], SHUT_WR));
	need(wait_for(p[1], POLLRDHUP));
	T(splice(p[1], NULL, pipes[1], NULL, 4000, 0));
	must(write(pipes[1], "abc", 3));
	signal(SIGPIPE, SIG_IGN);
	T(splice(pipes[0], NULL, p[0], NULL, 3, 0));

	T(vmsplice(pipes[1], &(struct iovec){ data, 100 }, 1, 0));
	T(copy_file_range(f, &(loff_t){ 0 }, p[1], NULL, 10, 0));
	out = must(open("/dev/null", O_WRONLY));
	T(sendfile(out, p[1], NULL, 10));
	not_all(f);
	return 0;
}
