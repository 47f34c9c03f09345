// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_trace.c - the registers of those who die, from the host's ptrace()
 *
 * Who may not load a program into the host's kernel (adopt_bpf.c) may still trace its own processes.
 * Each thread of the node is seized (it is not stopped by that), with PTRACE_O_TRACEEXIT: one that is
 * killed stops once more on its way out, and its registers can be read. What that costs: each signal of the
 * thread's goes through here, and the place of a debugger. So only where the node has several
 * programs; and a thread that gets many signals is let go.
 *
 * All that stops is sent on at once. At its end, or when job control stops it, a thread is let go: then its parent hears of it
 * from the host, as ever.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/dirent.h>
#include <linux/ptrace.h>
#include <uapi/linux/wait.h>
#include <uapi/linux/fcntl.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

#define HOST_GETREGS		12
#define SIGNALS_MANY		200	/* of one thread within ... */
#define SIGNALS_NS		100000000ULL
#define BUSY_MAX		64	/* threads whose signals are counted */
#define REGS_ALL		27	/* words of the host's struct user_regs_struct */

static struct { u32 tid, count; u64 since; } busy[BUSY_MAX];

static long trace(long request, u32 tid, unsigned long addr, unsigned long data)
{
	return ring3_host_syscall(__NR_ptrace, request, tid, addr, data, 0, 0);
}

static void seize_threads(u32 pid)
{
	char path[32], buffer[1024];
	struct linux_dirent64 *entry;
	long fd, n, at;

	ring3_put_tasks(path, pid);
	fd = ring3_host_syscall(__NR_open, (long)path, O_RDONLY | O_DIRECTORY, 0, 0, 0, 0);
	if (fd < 0)
		return;
	while ((n = ring3_host_syscall(__NR_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (at = 0; at < n; at += entry->d_reclen) {
			const char *name;
			u32 tid = 0;

			entry = (void *)buffer + at;
			for (name = entry->d_name; *name >= '0' && *name <= '9'; name++)
				tid = 10 * tid + *name - '0';
			/* Those that are ours already, and those that may not be, are refused. */
			if (tid)
				trace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACEEXIT);
		}
	}
	ring3_host_syscall(__NR_close, fd, 0, 0, 0, 0, 0);
}

/* Programs have come. One that is alone is left alone. */
void ring3_adopt_trace_look(void)
{
	struct ring3_proc *proc, *end = ring3_region.procs + host_load(&ring3_region.procs_used);
	int n = 0;

	for (proc = ring3_region.procs; proc < end; proc++)
		n += host_load(&proc->state) == 1 && proc->pid > 0;
	if (n < 2)
		return;
	for (proc = ring3_region.procs; proc < end; proc++)
		if (host_load(&proc->state) == 1 && proc->pid > 0 && proc->pid != ring3_region.keeper_pid)
			seize_threads(proc->pid);
}

static bool gets_many(u32 tid)
{
	typeof(&busy[0]) it = &busy[tid % BUSY_MAX];
	u64 now = ring3_clock();

	if (it->tid != tid || now - it->since > SIGNALS_NS) {
		it->tid = tid;
		it->since = now;
		it->count = 0;
	}
	return ++it->count > SIGNALS_MANY;
}

/* It stands at its end, and is traced. */
static void stands(struct ring3_thread *me, u32 tid, enum ring3_fate fate)
{
	struct ring3_death death = { .tid = tid };
	u64 regs[REGS_ALL];

	if (ring3_adopt_holds(tid, &death.pid) && !trace(HOST_GETREGS, tid, 0, (long)regs)) {
		memcpy(&death.regs, regs, sizeof(death.regs));
		ring3_adopt(me, &death, fate);
	} else {
		ring3_adopt_let_go(&death, fate);
	}
}

void ring3_adopt_let_go(struct ring3_death *death, enum ring3_fate fate)
{
	if (fate == FATE_GONE)
		return;
	/* One that job control has stopped stays so, but without us. */
	trace(PTRACE_DETACH, death->tid, 0, 0);
}

void ring3_adopt_trace(struct ring3_thread *me)
{
	int status, sig, event;
	long tid;

	while ((tid = ring3_host_syscall(__NR_wait4, -1, (long)&status, WNOHANG | __WALL, 0, 0, 0)) > 0) {
		if ((status & 0xff) != 0x7f)
			continue;
		sig = status >> 8 & 0xff;
		event = status >> 16;
		if (event == PTRACE_EVENT_EXIT)
			stands(me, tid, FATE_ENDS);
		else if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
			trace(PTRACE_LISTEN, tid, 0, 0);
		else if (event)
			trace(PTRACE_CONT, tid, 0, 0);
		else
			trace(gets_many(tid) ? PTRACE_DETACH : PTRACE_CONT, tid, 0, sig);
	}
}
