// SPDX-License-Identifier: GPL-2.0
/*
 * splice() into a pipe that another process keeps full: with SPLICE_F_NONBLOCK it does not wait and loses nothing, and
 * without, splices of other threads into other pipes do not wait for it.
 */
#include "oracle.h"

#define TURNS	3000

static int contended[2], other[2], from[2], other_from[2];

static void *feed(void *none)
{
	static char bytes[4096];

	while (write(from[0], bytes, sizeof(bytes)) > 0)
		;
	return none;
}

static void *waits(void *none)
{
	while (splice(from[1], NULL, contended[1], NULL, 4096, 0) > 0)
		;
	return none;
}

/* The process writes whenever there is room. */
static pid_t keep_full(void)
{
	static char bytes[4096];
	pid_t pid = must(fork());

	if (pid)
		return pid;
	must(close(contended[0]));
	while (write(contended[1], bytes, sizeof(bytes)) > 0)
		;
	_exit(0);
}

/* Makes room, and lets the process come near it: a little later each time. */
static void take(int turn)
{
	static char bytes[4096];
	double until;

	for (size_t n = 0; n < sizeof(bytes);)
		n += must(read(contended[0], bytes, sizeof(bytes) - n));
	for (until = seconds() + turn % 100 * (turn % 2 ? 1e-6 : 1e-7); seconds() < until;)
		;
}

int main(void)
{
	int file = must(open("/proc/sys/net/ipv4/ip_default_ttl", O_RDONLY));
	long moved = 0, refused = 0, wrong = 0, n, at;
	char byte;
	pid_t pid;

	alarm(60);
	must(pipe(contended));
	must(pipe(other));
	tcp_pair(AF_INET, from);
	tcp_pair(AF_INET, other_from);
	pid = keep_full();
	sleep_ms(50);

	for (int i = 0; i < TURNS; i++) {
		take(i);
		at = must(lseek(file, 0, SEEK_SET));
		n = splice(file, NULL, contended[1], NULL, 100, SPLICE_F_NONBLOCK);
		moved += n > 0;
		refused += n < 0 && errno == EAGAIN;
		wrong += must(lseek(file, 0, SEEK_CUR)) != (n > 0 ? n : at);
	}
	say("a file: each moved or refused %d", moved + refused == TURNS);
	N(wrong);

	must(send(from[0], "x", 1, 0));
	need(wait_for(from[1], POLLIN));
	for (int i = refused = moved = 0; i < TURNS; i++) {
		take(i);
		n = splice(from[1], NULL, contended[1], NULL, 100, SPLICE_F_NONBLOCK);
		refused += n < 0 && errno == EAGAIN;
		if (n <= 0)
			continue;
		moved += n;
		must(send(from[0], "x", 1, 0));
		need(wait_for(from[1], POLLIN));
	}
	say("a socket: each moved or refused %d", moved + refused == TURNS);

	spawn(feed, NULL);
	spawn(waits, NULL);
	for (int i = moved = 0; i < TURNS; i++) {
		take(i);
		must(send(other_from[0], "x", 1, 0));
		moved += must(splice(other_from[1], NULL, other[1], NULL, 100, 0));
		must(read(other[0], &byte, 1));
	}
	say("another pair %d", moved == TURNS);
	must(kill(pid, SIGKILL));
	must(waitpid(pid, NULL, 0));
	_exit(0);
}
