// SPDX-License-Identifier: GPL-2.0
/*
 * sendfile() from one descriptor number that means another file in each process, and in each thread with
 * a file table of its own. All send at once; each far side looks at every byte.
 */
#include "oracle.h"
#include <sched.h>
#include <sys/sendfile.h>

#define SENDERS	8
#define FILE_FD	60		/* the number that all of them read from */
#define SOCK_FD	61
#define SIZE	(256 * 1024)
#define ROUNDS	400

static unsigned char pattern(int who, size_t at)
{
	return who * 37 + at / 4096 * 3 + at % 251;
}

/* The file of sender `who`, of which nobody else has a name. */
static int file_of(int who)
{
	char name[] = "/tmp/sendfile_owners.XXXXXX";
	static unsigned char data[SIZE];
	int fd = must(mkstemp(name));

	unlink(name);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = pattern(who, i);
	need(write(fd, data, SIZE) == SIZE);
	return fd;
}

static void send_all(int sock, int file)
{
	for (int round = 0; round < ROUNDS; round++) {
		off_t at = 0;

		while (at < SIZE)
			need(sendfile(sock, file, &at, SIZE - at) > 0);
	}
}

/* How many bytes are not those of the file. */
static size_t receive_all(int sock, int who)
{
	static unsigned char in[65536];
	size_t wrong = 0, at = 0;
	ssize_t n;

	while ((n = recv(sock, in, sizeof(in), 0)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			wrong += in[i] != pattern(who, at % SIZE);
	return wrong + (at == (size_t)SIZE * ROUNDS ? 0 : 1);
}

static int files[SENDERS], pairs[SENDERS][2];

static void make_all(void)
{
	for (int who = 0; who < SENDERS; who++) {
		files[who] = file_of(who);
		tcp_pair(AF_INET, pairs[who]);
	}
}

static void close_all(int but)
{
	for (int who = 0; who < SENDERS; who++) {
		close(files[who]);
		for (int end = 0; end < 2; end++)
			if (pairs[who][end] != but)
				close(pairs[who][end]);
	}
}

/* Each in a process of its own; says how many got what they should not. */
static int receivers_end(int n)
{
	int status, wrong = 0;

	for (int i = 0; i < n; i++) {
		must(wait(&status));
		wrong += !!status;
	}
	return wrong;
}

static void receiver(int who)
{
	if (must(fork()))
		return;
	close_all(pairs[who][1]);
	_exit(receive_all(pairs[who][1], who) ? 1 : 0);
}

static void processes(void)
{
	make_all();
	for (int who = 0; who < SENDERS; who++) {
		if (!must(fork())) {
			must(dup2(files[who], FILE_FD));
			must(dup2(pairs[who][0], SOCK_FD));
			close_all(-1);
			send_all(SOCK_FD, FILE_FD);
			_exit(0);
		}
		receiver(who);
	}
	close_all(-1);
	say("processes: %d of %d had another's data", receivers_end(2 * SENDERS), SENDERS);
}

static int left = SENDERS;

/* A thread with a file table of its own. It has the first thread's libc state, so it makes few calls of that. */
static int sender(void *arg)
{
	long who = (long)arg;

	must(dup2(files[who], FILE_FD));
	send_all(pairs[who][0], FILE_FD);
	must(shutdown(pairs[who][0], SHUT_WR));
	__atomic_sub_fetch(&left, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_exit, 0);
	return 0;
}

static void threads(void)
{
	static char stacks[SENDERS][65536] __attribute__((aligned(16)));

	make_all();
	for (int who = 0; who < SENDERS; who++)
		receiver(who);
	for (long who = 0; who < SENDERS; who++)
		must(clone(sender, stacks[who + 1], CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
			   (void *)who));
	while (__atomic_load_n(&left, __ATOMIC_SEQ_CST))
		sleep_ms(2);
	say("threads: %d of %d had another's data", receivers_end(SENDERS), SENDERS);
}

int main(void)
{
	processes();
	threads();
	return 0;
}
