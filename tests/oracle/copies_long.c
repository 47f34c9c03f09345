// SPDX-License-Identifier: GPL-2.0
/* Long copies of processes that contend: the bytes are right, a bad pointer is EFAULT, and the ends of threads that copy are clean. */
#include "oracle.h"

#define LONG	(64 << 10)
#define TOTAL	(16 << 20)
#define ROUNDS	10

static char buf[LONG];

static char pattern(size_t at)
{
	return (at >> 12) * 7 + at;
}

static void sends(int fd, size_t total)
{
	for (size_t at = 0; at < total; at += LONG) {
		for (size_t i = 0; i < LONG; i++)
			buf[i] = pattern(at + i);
		for (ssize_t n = 0, done = 0; done < LONG; done += n) {
			n = write(fd, buf + done, LONG - done);
			if (n <= 0)
				_exit(3);
		}
	}
}

/* The number of bytes up to the end of the stream, or to the first that is wrong. */
static size_t receives(int fd)
{
	size_t at = 0;
	ssize_t n;

	while ((n = read(fd, buf, LONG)) > 0)
		for (ssize_t i = 0; i < n; i++, at++)
			if (buf[i] != pattern(at))
				return at;
	return at;
}

static int ended(pid_t pid)
{
	int status;

	must(waitpid(pid, &status, 0));
	return status;
}

static void streams(void)
{
	pid_t pids[6];
	int pair[2];

	for (int i = 0; i < 6; i += 2) {
		tcp_pair(AF_INET, pair);
		pids[i] = must(fork());
		if (!pids[i]) {
			close(pair[1]);
			sends(pair[0], TOTAL);
			_exit(0);
		}
		pids[i + 1] = must(fork());
		if (!pids[i + 1]) {
			close(pair[0]);
			_exit(receives(pair[1]) == TOTAL ? 0 : 4);
		}
		close(pair[0]);
		close(pair[1]);
	}
	for (int i = 0; i < 6; i++)
		N(ended(pids[i]));
}

/* Processes to contend with. */
static pid_t noise(void)
{
	pid_t pid = must(fork());
	int pair[2];

	if (pid)
		return pid;
	tcp_pair(AF_INET, pair);
	if (!must(fork())) {
		close(pair[1]);
		sends(pair[0], 1UL << 40);
	}
	close(pair[0]);
	receives(pair[1]);
	_exit(0);
}

static void bad_memory(void)
{
	char *bad = mmap(NULL, 2 * LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t sent = 0, came = 0;
	ssize_t n;
	int pair[2];

	need(bad != MAP_FAILED);
	must(mprotect(bad + LONG, LONG, PROT_NONE));
	tcp_pair(AF_INET, pair);
	for (int i = 0; i < ROUNDS; i++) {
		T(write(pair[0], bad + LONG, LONG));
		/* How much is sent before the fault depends on the pages that the socket has. */
		n = send(pair[0], bad + LONG / 2, LONG, MSG_DONTWAIT);
		need(n > 0 ? n <= LONG / 2 : errno == EFAULT);
		sent += n > 0 ? n : 0;
		T(read(pair[1], bad + LONG, LONG));
	}
	close(pair[0]);
	while ((n = read(pair[1], buf, LONG)) > 0)
		came += n;
	N(came == sent);
	close(pair[1]);
}

static void *sends_on(void *fd)
{
	sends(*(int *)fd, 1UL << 40);
	return NULL;
}

/* A process ends, executes a program, or is killed, while a thread of it copies. */
static void ends(void)
{
	for (int i = 0; i < ROUNDS * 3; i++) {
		pid_t reader, pid;
		int pair[2];

		tcp_pair(AF_INET, pair);
		pid = must(fork());
		if (!pid) {
			close(pair[1]);
			fcntl(pair[0], F_SETFD, FD_CLOEXEC);
			spawn(sends_on, &pair[0]);
			usleep(1000 + 300 * i);
			if (i % 3 == 0)
				_exit(5);
			if (i % 3 == 1)
				execl("/proc/self/exe", "copies_long", "executed", NULL);
			pause();
		}
		reader = must(fork());
		if (!reader) {
			close(pair[0]);
			/* The last of it may be cut off anywhere. */
			receives(pair[1]);
			_exit(6);
		}
		close(pair[0]);
		close(pair[1]);
		usleep(1000 + 300 * i);
		if (i % 3 == 2)
			must(kill(pid, SIGKILL));
		N(ended(reader));
		/* The executed program lives on: its end is not what ended the stream. */
		if (i % 3 == 1)
			must(kill(pid, SIGKILL));
		N(ended(pid));
	}
}

int main(int argc, char **argv)
{
	pid_t beside;

	(void)argv;
	if (argc > 1)
		return pause();
	signal(SIGPIPE, SIG_IGN);
	alarm(60);
	streams();
	beside = noise();
	bad_memory();
	ends();
	must(kill(beside, SIGKILL));
	ended(beside);
	return 0;
}
