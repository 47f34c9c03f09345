// SPDX-License-Identifier: GPL-2.0
/*
 * deadlock.c - all programs wait, and no timer wakes one: which they are, and in which calls
 *
 * The thread that finds it (turn_idle()) leaves a note. KEEP reads it, on its own stack, since names of hosts and programs
 * are the host's to tell. Then the clock stands still: a program that joins from outside may change everything. Where
 * nothing will (ring3_sim_deadlock=1), the node fails.
 */
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/syscall.h>
#include <asm/unistd.h>
#include "../kernel/errand.h"
#include "../vcpu/internal.h"
#include "turn.h"

#define NAMED		20U		/* lines at most */

static bool is_end;			/* ring3_sim_deadlock= */
static u64 noted;			/* virtual time + 1 of the last turn. W: the thread that finds it */

void turn_tell_deadlock(u64 since)
{
	WRITE_ONCE(noted, since + 1);
	ring3_kick(ring3_region.vcpu);
}

/* Up to size - 1 bytes of /proc/PID/NAME, with a 0 behind them. */
static long read_proc(int pid, const char *name, char *buf, size_t size)
{
	char path[40];
	long fd, n = 0, got;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = ring3_host_syscall(__NR_open, (long)path, 0 /* O_RDONLY */, 0, 0, 0, 0);
	if (fd >= 0) {
		while ((got = ring3_host_syscall(__NR_read, fd, (long)buf + n, size - 1 - n, 0, 0, 0)) > 0)
			n += got;
		ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
	}
	buf[n] = 0;
	return n;
}

/*
 * What `ring3 sim' calls the simulated host: it is in the environment that it gives each process, and in a file of the host.
 * Some programs write their titles over the environment.
 */
void turn_host_of(int pid, char *name, size_t size)
{
	static char environ[16384];
	long n = read_proc(pid, "environ", environ, sizeof(environ));
	const char *at;

	strscpy(name, "-", size);
	for (at = environ; at < environ + n; at += strlen(at) + 1)
		if (!strncmp(at, "HOSTNAME=", 9))
			strscpy(name, at + 9, size);
	if (is_end && !strcmp(name, "-") && read_proc(pid, "root/etc/hostname", name, size) < 1)
		strscpy(name, "-", size);
	strreplace(name, '\n', 0);
}

void turn_comm_of(int pid, char *name, size_t size)
{
	long n = read_proc(pid, "comm", name, size);

	if (n && name[n - 1] == '\n')
		name[n - 1] = 0;
}

/* As strace calls it, or its number. */
void turn_name_call(u64 nr, char *name, size_t size)
{
	char symbol[KSYM_SYMBOL_LEN];
	const char *at;

	if (nr < NR_syscalls) {
		sprint_symbol_no_offset(symbol, (unsigned long)sys_call_table[nr]);
		at = strstr(symbol, "sys_");
		if (at) {
			at += strlen("sys_");
			/* Some are the simulator's own (kernel/syscalls.c). */
			if (str_has_prefix(at, "turn_"))
				at += strlen("turn_");
			strscpy(name, at, size);
			return;
		}
	}
	snprintf(name, size, nr == RING3_NR_HOST_WAIT ? "a wait for the host" : "call %llu", nr);
}

/* One line of the keeper's log each; the first is the reason that the node may fail for. */
void turn_name_deadlock(void)
{
	static u64 told;
	static char line[160], first[112];
	char comm[TURN_NAME_BYTES], host[TURN_NAME_BYTES], call[32];
	u64 at = READ_ONCE(noted) - 1;
	struct ring3_thread *tb;
	u32 count = 0;
	int n;

	if (likely(noted == told) || host_load(&ring3_region.vcpu[0].owner))
		return;
	told = noted;
	first[0] = 0;
	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		const struct ring3_proc *proc = (const struct ring3_proc *)tb->proc;

		if (!(r3t_flags(tb) & R3_F_TURN) || (r3t_flags(tb) & R3_F_GONE) || !tb->task || !proc || count++ >= NAMED)
			continue;
		turn_comm_of(proc->pid, comm, sizeof(comm));
		turn_host_of(proc->pid, host, sizeof(host));
		turn_name_call(tb->nr, call, sizeof(call));
		if (!first[0])
			snprintf(first, sizeof(first), "host %s, %s (process %d) in %s", host, comm, proc->pid, call);
		n = scnprintf(line, sizeof(line), "ring3: deadlock at %llu.%09llu s: host %s, %s (process %d, thread %d) waits in %s\n",
			      at / NSEC_PER_SEC, at % NSEC_PER_SEC, host, comm, proc->pid, tb->tid, call);
		ring3_host_stderr(line, n);
	}
	if (is_end && count)
		ring3_poison("deadlock at %llu.%09llu s: %s; %u threads wait, no timer wakes one",
			     at / NSEC_PER_SEC, at % NSEC_PER_SEC, first, count);
}

static int __init set_end(char *yes)
{
	return !kstrtobool(yes, &is_end);
}
__setup("ring3_sim_deadlock=", set_end);
