// SPDX-License-Identifier: GPL-2.0
/*
 * trace.c - each call that the node serves, as a line of a file: when it ended, whose it was, which, and what came of it
 *
 * The thread that has the turn leaves a record, and KEEP writes it, on its own stack. Where KEEP does not keep up the thread
 * waits for it in real time. With a trace each call takes the long way: its cost for entry.S is FOREVER, see order.c.
 * Lines of two runs that are equal are equal, so the first that differs is the first call in which two runs do
 * (`ring3 sim diff').
 */
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <asm/unistd.h>
#include "../clock/clock.h"
#include "../vcpu/internal.h"
#include "turn.h"

#define RECORDS		32768U
#define WAIT_NS		(10 * NSEC_PER_MSEC)	/* of real time; KEEP wakes who waits */

struct record {
	u64 at;
	s64 ret;
	s32 pid;
	u32 nr;
};

static struct record records[RECORDS];
static u32 head, tail;		/* W: the thread with the turn; KEEP */
static char path[256];
bool turn_traces;

void turn_trace(u32 nr, s32 pid, s64 ret)
{
	u32 done;

	while (head - (done = host_load(&tail)) == RECORDS) {
		ring3_kick(ring3_region.vcpu);
		ring3_host_futex_wait(&tail, done, WAIT_NS);
	}
	records[head % RECORDS] = (struct record){ .at = ring3_clock(), .ret = ret, .pid = pid, .nr = nr };
	host_store(&head, head + 1);
	if (head % (RECORDS / 4) == 0)
		ring3_kick(ring3_region.vcpu);
}

/* By KEEP, and once more when the node is over. */
void turn_trace_write(void)
{
	static char text[8192], name[32];
	static long fd = -1;
	u32 end = host_load(&head), n = 0;

	if (likely(!turn_traces) || tail == end)
		return;
	if (fd < 0)
		fd = ring3_host_syscall(__NR_open, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644, 0, 0, 0);
	while (tail != end) {
		const struct record *r = &records[tail % RECORDS];

		turn_name_call(r->nr, name, sizeof(name));
		n += scnprintf(text + n, sizeof(text) - n, "%llu.%09llu %d %s %lld\n", r->at / NSEC_PER_SEC,
			       r->at % NSEC_PER_SEC, r->pid, name, r->ret);
		host_store(&tail, tail + 1);
		if (tail == end || n > sizeof(text) - 128) {
			ring3_host_syscall(__NR_write, fd, (long)text, n, 0, 0, 0);
			n = 0;
		}
	}
	ring3_host_futex_wake(&tail, INT_MAX);
}

/*
 * What a run is observed by is no part of it: Linux mixes its command line into what is random, so these words come off it
 * before that. They are its last: ring3_sim_jitter=US, and ring3_sim_trace=PATH behind it.
 */
void __init turn_observed(char *cmdline)
{
	static const char jitter[] = " ring3_sim_jitter=", trace[] = " ring3_sim_trace=";
	char *at = strstr(cmdline, jitter), *file;

	if (!at)
		return;
	*at = 0;
	at += strlen(jitter);
	file = strstr(at, trace);
	if (file) {
		*file = 0;
		turn_traces = strscpy(path, file + strlen(trace), sizeof(path)) > 0;
	}
	if (kstrtou32(at, 0, &ring3_region.jitter_us))
		ring3_region.jitter_us = 0;
}
