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

/* The flags that the host has of the thread; false: there is no such thread, or it may not be looked at. */
static bool host_flags(u32 pid, u32 tid, u32 *flags)
{
	char path[64], stat[STAT_BYTES], *at, *behind_name = NULL;
	int field = FIELD_STATE - 1;
	long fd, n;

	put(put_number(put(ring3_put_tasks(path, pid), "/"), tid), "/stat");
	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY, 0, 0, 0, 0);
	if (fd < 0)
		return false;
	n = ring3_host_syscall(__NR_read, fd, (long)stat, sizeof(stat) - 1, 0, 0, 0);
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
	if (n <= 0)
		return false;
	stat[n] = 0;
	/* The name may have anything in it. */
	for (at = stat; *at; at++)
		if (*at == ')')
			behind_name = at + 1;
	for (at = behind_name; at && *at; at++)
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
