// SPDX-License-Identifier: GPL-2.0
/* cycles - what the cycle counter, and the clock of the CPU's use, say of a sleep of two seconds */
#include "oracle.h"
#include <sys/resource.h>
#include <time.h>
#include <x86intrin.h>

int main(void)
{
	struct timespec two = { .tv_sec = 2 };
	unsigned int cpu = 7;
	unsigned long long before = __rdtsc(), after;
	struct rusage used;

	must(nanosleep(&two, NULL));
	after = __rdtscp(&cpu);
	must(getrusage(RUSAGE_SELF, &used));
	printf("%llu %u %ld\n", after - before, cpu, used.ru_utime.tv_sec);
	return 0;
}
