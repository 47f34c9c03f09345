// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_proc.c - what the host's /proc says of threads
 *
 * For the adopter (adopt.c), on its own stack, without a library.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <uapi/linux/fcntl.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define STAT_BYTES	512
#define FIELD_FLAGS	9		/* of /proc/PID/task/TID/stat, counted from 1 */
#define FIELD_STATE	3
#define HOST_PF_EXITING	0x4		/* the host's PF_EXITING: set before its sched_process_exit */

static char *put(char *to, const char *text)
{
	while (*text)
		*to++ = *text++;
	*to = 0;
	return to;
}

static char *put_number(char *to, u32 n)
{
	char digits[12];
	int i = sizeof(digits) - 1;

	digits[i] = 0;
	do {
		digits[--i] = '0' + n % 10;
		n /= 10;
	} while (n);
	return put(to, digits + i);
}

char *ring3_put_tasks(char *to, u32 pid)
{
	return put(put_number(put(to, "/proc/"), pid), "/task");
}

/* What the host's stat says of the thread, from its state on; NULL: there is no such thread, or it may not be looked at. */
static char *host_stat(u32 pid, u32 tid, char stat[STAT_BYTES])
{
	char path[64], *at, *behind_name = NULL;
	long fd, n;

	put(put_number(put(ring3_put_tasks(path, pid), "/"), tid), "/stat");
	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY, 0, 0, 0, 0);
	if (fd < 0)
		return NULL;
	n = ring3_host_syscall(__NR_read, fd, (long)stat, STAT_BYTES - 1, 0, 0, 0);
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
	if (n <= 0)
		return NULL;
	stat[n] = 0;
	/* The name may have anything in it. */
	for (at = stat; *at; at++)
		if (*at == ')')
			behind_name = at + 1;
	return behind_name && behind_name[0] ? behind_name + 1 : NULL;
}

static bool host_flags(u32 pid, u32 tid, u32 *flags)
{
	char stat[STAT_BYTES], *at = host_stat(pid, tid, stat);
	int field = FIELD_STATE;

	for (; at && *at; at++)
		if (*at == ' ' && ++field == FIELD_FLAGS)
			break;
	if (!at || !*at)
		return false;
	for (*flags = 0, at++; *at >= '0' && *at <= '9'; at++)
		*flags = 10 * *flags + *at - '0';
	return true;
}

/* The host says that the thread is not about to end. */
bool ring3_adopt_goes_on(u32 pid, u32 tid)
{
	u32 flags;

	return host_flags(pid, tid, &flags) && !(flags & HOST_PF_EXITING);
}

/* Job control has stopped the thread. */
bool ring3_adopt_is_stopped(u32 pid, u32 tid)
{
	char stat[STAT_BYTES], *state = host_stat(pid, tid, stat);

	return state && *state == 'T';
}
