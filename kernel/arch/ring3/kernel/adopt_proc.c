// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_proc.c - what the host's /proc says of threads
 *
 * For the adopter (adopt.c), on its own stack, without a library.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/dirent.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <uapi/linux/fcntl.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define STAT_BYTES	512
#define STATUS_BYTES	512		/* its name, the number of its tracer, and what is before that */
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

static char *put_tasks(char *to, u32 pid)
{
	return put(put_number(put(to, "/proc/"), pid), "/task");
}

static char *put_thread(char *to, u32 pid, u32 tid)
{
	return put_number(put(put_tasks(to, pid), "/"), tid);
}

static u32 number(const char **at)
{
	u32 n = 0;

	while (**at >= '0' && **at <= '9')
		n = 10 * n + *(*at)++ - '0';
	return n;
}

/* The beginning of the file as text; false: there is no such file, or it may not be read. */
static bool read_text(const char *path, char *text, u32 bytes)
{
	long fd, n;

	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY, 0, 0, 0, 0);
	if (fd < 0)
		return false;
	n = ring3_host_syscall(__NR_read, fd, (long)text, bytes - 1, 0, 0, 0);
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
	text[max(n, 0L)] = 0;
	return n > 0;
}

void ring3_adopt_each_thread(u32 pid, void (*fn)(u32 pid, u32 tid, void *arg), void *arg)
{
	struct linux_dirent64 *entry;
	char path[32], buffer[1024];
	long fd, n, at;

	put_tasks(path, pid);
	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY | O_DIRECTORY, 0, 0, 0, 0);
	if (fd < 0)
		return;
	while ((n = ring3_host_syscall(__NR_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (at = 0; at < n; at += entry->d_reclen) {
			const char *name;
			u32 tid;

			entry = (void *)buffer + at;
			name = entry->d_name;
			tid = number(&name);
			if (tid)
				fn(pid, tid, arg);
		}
	}
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
}

/* What the host's stat says of the thread, from its state on; NULL: there is no such thread, or it may not be looked at. */
static char *host_stat(u32 pid, u32 tid, char stat[STAT_BYTES])
{
	char path[64], *at, *behind_name = NULL;

	put(put_thread(path, pid, tid), "/stat");
	if (!read_text(path, stat, STAT_BYTES))
		return NULL;
	/* The name may have anything in it. */
	for (at = stat; *at; at++)
		if (*at == ')')
			behind_name = at + 1;
	return behind_name && behind_name[0] ? behind_name + 1 : NULL;
}

static bool host_flags(u32 pid, u32 tid, u32 *flags)
{
	char stat[STAT_BYTES], *at = host_stat(pid, tid, stat);
	const char *digits;
	int field = FIELD_STATE;

	for (; at && *at; at++)
		if (*at == ' ' && ++field == FIELD_FLAGS)
			break;
	if (!at || !*at)
		return false;
	digits = at + 1;
	*flags = number(&digits);
	return true;
}

/* The host says that the thread is not about to end. */
bool ring3_adopt_goes_on(u32 pid, u32 tid)
{
	u32 flags;

	return host_flags(pid, tid, &flags) && !(flags & HOST_PF_EXITING);
}

/* Job control or a tracer has stopped the thread. */
bool ring3_adopt_is_stopped(u32 pid, u32 tid)
{
	char stat[STAT_BYTES], *state = host_stat(pid, tid, stat);

	return state && (*state == 'T' || *state == 't');
}

static void is_one_stopped(u32 pid, u32 tid, void *any)
{
	*(bool *)any |= ring3_adopt_is_stopped(pid, tid);
}

/* The same of a process. Its first thread may have ended. */
bool ring3_adopt_process_stopped(u32 pid)
{
	char stat[STAT_BYTES], *state = host_stat(pid, pid, stat);
	bool any = state && (*state == 'T' || *state == 't');

	if (state && *state == 'Z')
		ring3_adopt_each_thread(pid, is_one_stopped, &any);
	return any;
}

/* The thread's tracer; 0: none. */
u32 ring3_adopt_tracer(u32 pid, u32 tid)
{
	static const char name[] = "\nTracerPid:\t";
	char path[64], text[STATUS_BYTES];
	const char *at;

	put(put_thread(path, pid, tid), "/status");
	if (!read_text(path, text, sizeof(text)))
		return 0;
	at = strstr(text, name);
	if (!at)
		return 0;
	at += sizeof(name) - 1;
	return number(&at);
}
