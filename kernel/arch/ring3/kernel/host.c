// SPDX-License-Identifier: GPL-2.0
/*
 * host.c - the host's system calls, and the image's uses of them
 *
 * Theory of operation
 * -------------------
 * A host call uses the descriptors, credentials and limits of the thread that makes it, and kernel code may run on
 * a thread of any process (DESIGN rule 11). So each call is of one of these kinds:
 *
 *	any	nothing depends on the caller's process
 *	port	a descriptor that every process of the node has, at a number of its own (ring3_proc.port_fd)
 *	home	needs the task's own thread (struct ring3_home)
 *	keeper	only the keeper's process makes it
 *	stack	code on a host thread's own stack, which acts for that thread
 *
 *	call				kind	why it may be made there
 *	futex wake, wait, waitv		any	the words are shared memory
 *	clock_gettime			any	a time namespace shifts CLOCK_MONOTONIC: clock/host.c refuses such a reading,
 *						and sleeps by its own
 *	sched_yield, nanosleep		any
 *	kill(pid, 0), tgkill(.., 0)	any	only ESRCH counts: EPERM means that it lives. A reused number looks alive;
 *						the keeper's pidfds are exact
 *	preadv2 (sendfile)		home	the program's descriptor
 *	readv, writev			port	TAP, packet: no RLIMIT_FSIZE, no SIGPIPE; rights were checked when opened
 *	recvmmsg, sendmmsg		port	packet, several frames at once; EPERM and ENOSYS are a filter's of that process
 *	recvfrom, sendmsg		port	passt: MSG_NOSIGNAL
 *	recvfrom, sendto, getsockopt	port	xdp and packet counters; a process without the descriptor gets EBADF, which
 *						says nothing about the port
 *	setsockopt (XDP_UMEM_REG)	keeper	pins the keeper's memory, by its RLIMIT_MEMLOCK, in PORT_ADD
 *	mincore				keeper	the boot (trim.c)
 *	madvise (MADV_POPULATE_WRITE,	keeper	its memory group is charged (populate.c)
 *	MADV_COLLAPSE)
 *	madvise (MADV_REMOVE)		any	the file is shared memory, and nothing is charged (trim.c)
 *	write (console)			keeper	a program's descriptor 2 may be any file of its own: errand.c
 *	kill, rt_sigqueueinfo and so on	keeper	signals that the node raised: errand.c
 *	poll, prctl, futex		stack	the files of vcpu/ and turn/
 *	bpf, ptrace, wait4, mmap ...	stack	adopt.c and others of that name: for the adopter, whose process is the keeper's child
 *
 * kernel/host_calls says which objects may make which of them. kernel/check refuses others.
 */
#include <linux/bug.h>
#include <linux/export.h>
#include <uapi/linux/fs.h>
#include <uapi/linux/futex.h>
#include <uapi/linux/mman.h>
#include <uapi/linux/uio.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/signal.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <asm/unistd.h>
#include "errand.h"
#include "../vcpu/vcpu.h"

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
	/* Not private: the waiter may be in another process. */
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

/* Sleeps until a word changes, or until the host's CLOCK_MONOTONIC, as this process sees it, is `at`. */
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
	/* So a flood on such a port is received without a task switch in between. */
	ring3_deadline_check();
	struct ring3_proc *proc = (struct ring3_proc *)ring3_driver->proc;

	return proc ? proc->port_fd[index] : -1;
}

void ring3_host_yield(void)
{
	ring3_host_syscall(__NR_sched_yield, 0, 0, 0, 0, 0, 0);
}

void ring3_host_nap(u64 ns)
{
	struct __kernel_timespec ts = { .tv_nsec = ns };

	ring3_host_syscall(__NR_nanosleep, (long)&ts, 0, 0, 0, 0, 0);
}

bool ring3_host_process_exists(int pid)
{
	return ring3_host_syscall(__NR_kill, pid, 0, 0, 0, 0, 0) != -ESRCH;
}

bool ring3_host_thread_exists(int pid, int tid)
{
	return ring3_host_syscall(__NR_tgkill, pid, tid, 0, 0, 0, 0) != -ESRCH;
}

long ring3_host_mincore(void *start, size_t len, u8 *resident)
{
	return ring3_host_syscall(__NR_mincore, (long)start, len, (long)resident, 0, 0, 0);
}

long ring3_host_punch(void *start, size_t len)
{
	return ring3_host_syscall(__NR_madvise, (long)start, len, MADV_REMOVE, 0, 0, 0);
}

void ring3_host_populate(void *start, size_t len)
{
	ring3_host_syscall(__NR_madvise, (long)start, len, MADV_POPULATE_WRITE, 0, 0, 0);
}

/*
 * Allocates huge pages if the host allows that, which needs some pages to be there already. If the host refuses
 * one, small pages.
 */
void ring3_host_populate_huge(void *start, size_t len)
{
	void *at;

	for (at = start; at + RING3_HUGE <= start + len; at += RING3_HUGE) {
		ring3_host_populate(at, PAGE_SIZE);
		ring3_host_syscall(__NR_madvise, (long)at, RING3_HUGE, MADV_COLLAPSE, 0, 0, 0);
	}
	ring3_host_populate(start, len);
}

/*
 * A process may send another one only codes like that of a queued SIGIO. The receiver's gate restores Linux's code
 * (name_band() in gate/signal/sigframe.c). If the queue of signals is full, Linux sends a plain SIGIO.
 */
long ring3_host_signal(const struct ring3_signal *s)
{
	siginfo_t info = { };
	long ret;

	info.si_signo = s->signo;
	info.si_code = SI_SIGIO;
	info.si_fd = s->fd;
	info.si_band = s->band;
	if (!s->tid) {
		ret = ring3_host_syscall(__NR_rt_sigqueueinfo, s->pid, s->signo, (long)&info, 0, 0, 0);
		if (ret == -EAGAIN)
			ret = ring3_host_syscall(__NR_kill, s->pid, SIGIO, 0, 0, 0, 0);
		return ret;
	}
	ret = ring3_host_syscall(__NR_rt_tgsigqueueinfo, s->pid, s->tid, s->signo, (long)&info, 0, 0);
	if (ret == -EAGAIN)
		ret = ring3_host_syscall(__NR_tgkill, s->pid, s->tid, SIGIO, 0, 0, 0);
	return ret;
}

void ring3_host_stderr(const char *s, u32 n)
{
	ring3_host_syscall(__NR_write, 2, (long)s, n, 0, 0, 0);
}

/* Reads only the part of a file that the host has in memory; never waits for a disk. */
long ring3_home_preadv_now(const struct ring3_home *home, int fd, const struct iovec *iov,
			   unsigned int n, s64 pos)
{
	const struct ring3_thread *tb = (const struct ring3_thread *)home;

	if (WARN_ON_ONCE(!tb || tb != current->thread.tb))
		return -EXDEV;
	/* The task's thread was killed or stopped meanwhile, and another thread continues this code: adopt.c. */
	if (ring3_driver != tb)
		return -EXDEV;
	return ring3_host_syscall(__NR_preadv2, fd, (long)iov, n, pos, 0, RWF_NOWAIT);
}
