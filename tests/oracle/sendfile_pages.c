// SPDX-License-Identifier: GPL-2.0
/*
 * sendfile() of whole pages: sizes and offsets on both sides of what one step moves, files that
 * lie on a disk and not in memory, that end early, and a socket that takes parts of them.
 */
#include "oracle.h"
#include <fcntl.h>
#include <sys/sendfile.h>

#define SIZE (1 << 20)

static unsigned char data[SIZE], in[SIZE];

/* Reads what was sent from file offset `at` on; false: something else comes. */
static bool comes(int fd, off_t at, size_t want)
{
	size_t got = 0;
	ssize_t n;

	while (got < want && (n = recv(fd, in + got, want - got, 0)) > 0)
		got += n;
	return got == want && !memcmp(in, data + at, want);
}

static int file(const char *template, size_t size)
{
	char name[64];
	int f;

	snprintf(name, sizeof(name), "%s", template);
	f = must(mkstemp(name));
	unlink(name);
	need(write(f, data, size) == (ssize_t)size);
	return f;
}

static void sizes(int p[2], int f)
{
	static const size_t some[] = { 4095, 4096, 4097, 16383, 16384, 16385, 32768, 65535, 65536, 65537,
				       131072, 200001 };
	static const off_t at[] = { 0, 1, 4095, 4096, 70001 };
	off_t offset;
	size_t i, k;

	for (i = 0; i < sizeof(some) / sizeof(*some); i++)
		for (k = 0; k < sizeof(at) / sizeof(*at); k++) {
			offset = at[k];
			T(sendfile(p[0], f, &offset, some[i]));
			say("then %ld, equal %d", (long)offset, comes(p[1], at[k], some[i]));
		}
	/* The end comes before the count does. */
	for (k = 0; k < 3; k++) {
		offset = SIZE - 5000 - 30000 * k;
		T(sendfile(p[0], f, &offset, 65536 << k));
		say("then %ld, equal %d", (long)offset, comes(p[1], SIZE - 5000 - 30000 * k, 5000 + 30000 * k));
	}
	offset = SIZE;
	T(sendfile(p[0], f, &offset, 65536));
	offset = SIZE + 100;
	T(sendfile(p[0], f, &offset, 65536));
}

/* Not in memory, or the first half of it only. */
static void cold(int p[2], int f)
{
	off_t offset = 0;

	must(fsync(f));
	must(posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED));
	T(sendfile(p[0], f, &offset, 150000));
	say("cold %d", comes(p[1], 0, 150000));
	must(posix_fadvise(f, 0, 0, POSIX_FADV_DONTNEED));
	need(pread(f, in, 100, 300000) == 100);
	offset = 290000;
	T(sendfile(p[0], f, &offset, 200000));
	say("lukewarm %d", comes(p[1], 290000, 200000));
}

/* A later change of the file does not reach data that was sent before, as with write(). */
static void rewritten(int p[2], int f)
{
	off_t offset = 0;

	T(sendfile(p[0], f, &offset, 32768));
	say("rewritten %d", comes(p[1], 0, 32768));
	need(pwrite(f, in + 4096, 4096, 0) == 4096);
	offset = 0;
	T(sendfile(p[0], f, &offset, 32768));
	T(recv(p[1], in, 32768, MSG_WAITALL));
	say("new %d, old %d", !memcmp(in, data + 4096, 4096), !memcmp(in + 4096, data + 4096, 32768 - 4096));
	need(pwrite(f, data, 4096, 0) == 4096);
}

/* The socket takes what it has room for, and the rest when the other end has read. */
static void parts(int f)
{
	off_t offset = 0, read = 0;
	bool equal = true;
	int p[2], turns;
	ssize_t n;

	tcp_pair(AF_INET, p);
	nonblocking(p[0]);
	setsockopt(p[0], SOL_SOCKET, SO_SNDBUF, &(int){ 50000 }, sizeof(int));
	for (turns = 0; read < SIZE && turns < 100000; turns++) {
		n = offset < SIZE ? sendfile(p[0], f, &offset, SIZE - offset) : 0;
		need(n >= 0 || errno == EAGAIN);
		n = recv(p[1], in, 1 + turns * 977 % 60000, MSG_DONTWAIT);
		need(n > 0 || errno == EAGAIN);
		if (n > 0) {
			equal &= !memcmp(in, data + read, n);
			read += n;
		}
	}
	say("parts: %ld of %ld, equal %d", (long)read, (long)offset, equal);
	close(p[0]);
	close(p[1]);
}

static void gone(int f)
{
	off_t offset = 0;
	int p[2], dir;

	tcp_pair(AF_INET, p);
	dir = must(open("/tmp", O_RDONLY | O_DIRECTORY));
	T(sendfile(p[0], dir, &offset, 65536));
	must(shutdown(p[0], SHUT_WR));
	signal(SIGPIPE, SIG_IGN);
	T(sendfile(p[0], f, &offset, 65536));
	say("offset %ld", (long)offset);
	close(dir);
	close(p[0]);
	close(p[1]);
}

int main(void)
{
	int disk, memory, p[2], six[2];

	for (int i = 0; i < SIZE; i++)
		data[i] = i * 7 + (i >> 9) + (i >> 17);
	disk = file("/tmp/oracle.XXXXXX", SIZE);
	memory = file("/dev/shm/oracle.XXXXXX", SIZE);
	tcp_pair(AF_INET, p);
	tcp_pair(AF_INET6, six);
	sizes(p, disk);
	sizes(six, memory);
	cold(p, disk);
	rewritten(p, disk);
	parts(disk);
	parts(memory);
	gone(disk);
	return 0;
}
