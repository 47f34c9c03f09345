// SPDX-License-Identifier: GPL-2.0
/* clocks - asks many times for clocks that the host's vDSO makes a call for */
#include "oracle.h"
#include <time.h>

int main(void)
{
	const clockid_t clocks[] = { CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID };
	struct timespec ts, before = {}, res;

	for (int i = 0; i < 20000; i++) {
		must(clock_gettime(clocks[i % 2], &ts));
		if (i % 2)
			continue;
		/* The process's does not go back. */
		if (ts.tv_sec < before.tv_sec || (ts.tv_sec == before.tv_sec && ts.tv_nsec < before.tv_nsec))
			return 1;
		before = ts;
		must(clock_getres(clocks[0], &res));
	}
	say("asked");
	return 0;
}
