// SPDX-License-Identifier: GPL-2.0
/* The host's system calls, and the few uses the image itself makes of them. */
#include <linux/export.h>
#include <uapi/linux/futex.h>
#include <linux/kernel.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "vcpu.h"

noinline long ring3_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
	register long r10 asm("r10") = a3;
	register long r8 asm("r8") = a4;
	register long r9 asm("r9") = a5;
	long ret;

	asm volatile("syscall"
		     : "=a" (ret)
		     : "a" (nr), "D" (a0), "S" (a1), "d" (a2), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

void ring3_host_futex_wake(u32 *word, int count)
{
	/* Shared: the waiter may be in another process. */
	ring3_host_syscall(__NR_futex, (long)word, FUTEX_WAKE, count, 0, 0, 0);
}

long ring3_host_futex_wait(u32 *word, u32 value, long timeout_ns)
{
	struct __kernel_timespec ts = {
		.tv_sec = timeout_ns / NSEC_PER_SEC,
		.tv_nsec = timeout_ns % NSEC_PER_SEC,
	};

	return ring3_host_syscall(__NR_futex, (long)word, FUTEX_WAIT, value, (long)&ts, 0, 0);
}

/* Sleeps until a word is not as it was, or the host's CLOCK_MONOTONIC is `at`, as this process sees it. */
long ring3_host_waitv(struct ring3_waitv *wv, unsigned int n, u64 at)
{
	struct __kernel_timespec ts = {
		.tv_sec = at / NSEC_PER_SEC,
		.tv_nsec = at % NSEC_PER_SEC,
	};

	return ring3_host_syscall(__NR_futex_waitv, (long)wv, n, 0, (long)&ts, 1 /* CLOCK_MONOTONIC */, 0);
}

int ring3_port_fd(unsigned int index)
{
	/* A flood on such a port is received without a switch in between. */
	ring3_deadline_check();
	struct ring3_proc *proc = (struct ring3_proc *)ring3_driver->proc;

	return proc ? proc->port_fd[index] : -1;
}
