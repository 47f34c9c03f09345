// SPDX-License-Identifier: GPL-2.0
/* The shared memory that a core file of a small program would hold. */
#include "oracle.h"

int main(void)
{
	unsigned long a, b, size = 0, dumped = 0;
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512], prot[8];

	need(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &a, &b, prot) == 3)
			size = prot[3] == 's' ? b - a : 0;
		else if (!strncmp(line, "VmFlags:", 8) && size && !strstr(line, " dd"))
			dumped += size;
	}
	say("more than 64 MiB: %s", dumped > 64 << 20 ? "yes" : "no");
	return 0;
}
