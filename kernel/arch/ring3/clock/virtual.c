// SPDX-License-Identifier: GPL-2.0
/*
 * virtual.c - the clock that stands still while programs run
 *
 * Nanoseconds since the node was loaded. The vCPU's owner advances it: by the cost of a call, or, if all tasks
 * wait, to the next event. The fast path in entry.S advances it too, by the cost of its call.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/init.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "../turn/turn.h"
#include "clock.h"

#define CALL_NS		1000	/* cost of a call: as of a system call on a busy server */
#define READ_NS		20	/* ... of reading the clock: as of a vDSO's */

u64 ring3_virtual_now;
u64 ring3_virtual_cost = CALL_NS;
u64 ring3_virtual_read_cost = READ_NS;

u64 ring3_clock(void)
{
	return READ_ONCE(ring3_virtual_now);
}

void ring3_clock_jump(u64 to)
{
	WRITE_ONCE(ring3_virtual_now, to);
}

u64 ring3_host_clock(int id)
{
	struct __kernel_timespec ts = {};

	ring3_host_syscall(__NR_clock_gettime, id, (long)&ts, 0, 0, 0, 0);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

void ring3_clock_sync(void)
{
}

bool ring3_clock_sync_now(void)
{
	return true;
}

/* ring3_sim_cost=CALL,READ: in nanoseconds. With 0,0, programs that poll never end. */
static int __init set_cost(char *words)
{
	char *read = strchr(words, ',');

	if (read)
		*read++ = 0;
	return !kstrtou64(words, 0, &ring3_virtual_cost) &&
	       (!read || !kstrtou64(read, 0, &ring3_virtual_read_cost));
}
__setup("ring3_sim_cost=", set_cost);
