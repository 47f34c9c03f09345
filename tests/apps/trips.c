// SPDX-License-Identifier: GPL-2.0
/*
 * trips - round trips of one byte over TCP between two processes of a loopback, one a millisecond
 *
 *	trips SECONDS LATE_MS
 *
 * Says how many there were, how many took longer than LATE_MS, and microseconds of the longest.
 */
#include "oracle.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	double end, late, longest = 0;
	int p[2], trips = 0, slow = 0;
	char b = 'x';
	pid_t pid;

	need(argc == 3);
	late = atof(argv[2]) / 1e3;
	tcp_pair(AF_INET, p);
	pid = must(fork());
	if (!pid) {
		close(p[0]);
		while (read(p[1], &b, 1) == 1)
			need(write(p[1], &b, 1) == 1);
		_exit(0);
	}
	close(p[1]);
	for (end = now() + atof(argv[1]); now() < end; usleep(1000)) {
		double start = now(), took;

		need(write(p[0], &b, 1) == 1 && read(p[0], &b, 1) == 1);
		took = now() - start;
		trips++;
		slow += took > late;
		if (took > longest)
			longest = took;
	}
	say("%d %d %.0f", trips, slow, longest * 1e6);
	close(p[0]);
	must(waitpid(pid, NULL, 0));
	return 0;
}
