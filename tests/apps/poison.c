// SPDX-License-Identifier: GPL-2.0
/*
 * poison.c - a program of a node that ends it: it writes into the kernel's memory what ring3_poison() would
 */
#include <linux/futex.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../../build/abi/include/ring3.h"

int main(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from, to, base = 0;
	struct ring3_region *region;
	char line[512];

	while (!base && maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &from, &to) == 2 && from >= RING3_SPACE_BASE && from < RING3_SPACE_END)
			base = from;
	region = (struct ring3_region *)base;
	if (!base || region->magic != RING3_MAGIC) {
		puts("not on a node");
		return 1;
	}
	strcpy(region->poison, "a test said so");
	atomic_store((_Atomic unsigned int *)&region->state, RING3_POISONED);
	atomic_fetch_add((_Atomic unsigned int *)&region->kick, 1);
	syscall(SYS_futex, &region->kick, FUTEX_WAKE, INT_MAX, 0, 0, 0);
	return 0;
}
