/* SPDX-License-Identifier: GPL-2.0 */
/*
 * splice_movers.h - several movers splice() from one source at once
 *
 * The source is a pipe, and each mover has a TCP socket to splice into; or the source is a TCP socket, and each has a
 * pipe. Movers are threads or processes. Each byte has to come out once, whichever mover has moved it.
 */
#ifndef SPLICE_MOVERS_H
#define SPLICE_MOVERS_H

#include "oracle.h"

#define MOVERS	3
#define CHUNK	4096

static bool from_pipe;
static unsigned int total;
static int source[2], into[MOVERS], behind[MOVERS];	/* the source's ends: read, written; a mover's sink, and its other end */
static unsigned int sent[256], came[MOVERS][256];
static long *moved, arrived[MOVERS];			/* moved: shared by the processes */

static void ends(int fd)
{
	if (from_pipe == (fd == source[1]))
		must(close(fd));
	else
		must(shutdown(fd, SHUT_WR));
}

static void *writer(void *none)
{
	unsigned char bytes[1000];
	unsigned int x = 1, n;

	for (unsigned int left = total; left; left -= n) {
		n = left < sizeof(bytes) ? left : sizeof(bytes);
		for (unsigned int i = 0; i < n; i++) {
			x = x * 1664525 + 1013904223;
			bytes[i] = x >> 24;
			sent[bytes[i]]++;
		}
		for (unsigned int at = 0; at < n;)
			at += must(write(source[1], bytes + at, n - at));
	}
	ends(source[1]);
	return none;
}

static void *mover(void *which)
{
	long i = (long)which, n;

	while ((n = must(splice(source[0], NULL, into[i], NULL, CHUNK, 0))) > 0)
		moved[i] += n;
	ends(into[i]);
	return NULL;
}

static pid_t mover_process(long i)
{
	pid_t pid = must(fork());

	if (pid)
		return pid;
	must(close(source[1]));
	for (long other = 0; other < MOVERS; other++) {
		must(close(behind[other]));
		if (other != i)
			must(close(into[other]));
	}
	mover((void *)i);
	_exit(0);
}

static void *reader(void *which)
{
	static __thread unsigned char bytes[65536];
	long i = (long)which, n;

	while ((n = must(read(behind[i], bytes, sizeof(bytes)))) > 0) {
		arrived[i] += n;
		while (n)
			came[i][bytes[--n]]++;
	}
	return NULL;
}

static void make_ends(void)
{
	int pair[2];

	if (from_pipe) {
		must(pipe(source));
	} else {
		tcp_pair(AF_INET, pair);
		source[0] = pair[0];
		source[1] = pair[1];
	}
	for (int i = 0; i < MOVERS; i++) {
		if (from_pipe)
			tcp_pair(AF_INET, pair);
		else
			must(pipe(pair));
		into[i] = pair[from_pipe ? 0 : 1];
		behind[i] = pair[from_pipe ? 1 : 0];
	}
}

static int move(bool pipe_to_sockets, bool processes, unsigned int bytes)
{
	pthread_t writes, moves[MOVERS], reads[MOVERS];
	long all_moved = 0, all_arrived = 0, wrong = 0;
	pid_t pids[MOVERS];

	alarm(100);
	from_pipe = pipe_to_sockets;
	total = bytes;
	moved = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	need(moved != MAP_FAILED);
	make_ends();
	for (long i = 0; i < MOVERS && processes; i++)
		pids[i] = mover_process(i);
	for (long i = 0; i < MOVERS; i++) {
		reads[i] = spawn(reader, (void *)i);
		if (processes)
			must(close(into[i]));
		else
			moves[i] = spawn(mover, (void *)i);
	}
	writes = spawn(writer, NULL);
	join(writes);
	for (int i = 0; i < MOVERS; i++) {
		if (processes)
			must(waitpid(pids[i], NULL, 0));
		else
			join(moves[i]);
		join(reads[i]);
		all_moved += moved[i];
		all_arrived += arrived[i];
	}
	for (int value = 0; value < 256; value++) {
		for (int i = 0; i < MOVERS; i++)
			sent[value] -= came[i][value];
		wrong += sent[value] != 0;
	}
	N(all_moved == total);
	N(all_arrived == total);
	N(wrong);
	return 0;
}

#endif /* SPLICE_MOVERS_H */
