// SPDX-License-Identifier: GPL-2.0
/*
 * stop.c - brings the process's other threads out of the image before the host ends them
 *
 * Theory of operation
 * -------------------
 * exit_group, execve and death by a signal end all other threads wherever they
 * are (and SIGTSTP stops them). In kernel code that would poison (or hold up) the
 * node. So the thread that does it first sends each of them a SIGSYS with a mark, which
 * no thread can block. A thread that is outside the image parks in the
 * handler; one that is inside (thread->inside) has its wait cut short and parks on
 * its way out. A thread that has just been made has no tid yet to send anything to: it
 * looks at `stopper' once it has, before it enters the image. Then nobody of this process can be
 * in kernel code, and the host may do as it likes.
 *
 * Parked threads may hold any gate_mutex, so between stop_others() and the end, or
 * stop_undo() where life goes on after all (a failing execve, SIGCONT), none
 * may be taken.
 */
#include "internal.h"
#include <linux/futex.h>

#define MARK		0x72696e67330073ULL
#define GRACE_NS	2000000L	/* an interrupt has reached its core by then */
#define LIMIT_NS	1000000000L	/* for a call that can't be interrupted */

static u32 stopper;		/* futex: tid of the thread that stops the others, 0: nobody */
static u64 stop_proc;		/* ... and its process: vfork children share this memory */

static u64 clock_ns(void)
{
	struct timespec ts;

	host_syscall2(__NR_clock_gettime, 1 /* CLOCK_MONOTONIC */, (long)&ts);
	return ts.tv_sec * 1000000000UL + ts.tv_nsec;
}

static void nap(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	host_syscall2(__NR_nanosleep, (long)&ts, 0);
}

/* Waits while another thread of this process is ending it. */
void stop_park(void)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();
	u32 s;

	WRITE_ONCE(tcb->stop, 0);
	while ((s = READ_ONCE(stopper)) && s != t->tid && READ_ONCE(stop_proc) == t->proc) {
		__atomic_store_n(&tcb->parked, 1, __ATOMIC_RELEASE);
		host_syscall4(__NR_futex, (long)&stopper, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, s, 0);
	}
	WRITE_ONCE(tcb->parked, 0);
}

bool stop_is_mark(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE && info->si_value.sival_ptr == (void *)MARK;
}

/* The SIGSYS handler: is this one ours? */
bool stop_signal(const siginfo_t *info)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();

	if (!stop_is_mark(info))
		return false;
	if (!READ_ONCE(t->inside)) {
		stop_park();
		return true;
	}
	WRITE_ONCE(tcb->stop, 1);
	WRITE_ONCE(t->sigpending, 1);
	__atomic_fetch_or(&t->word, RING3_WORD_SIGNAL, __ATOMIC_SEQ_CST);
	return true;
}

static void send(struct gate_tcb *tcb)
{
	u32 tid = READ_ONCE(tcb->thread->tid);
	siginfo_t info;

	if (!tid)
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGSYS;
	info.si_code = SI_QUEUE;
	info.si_value.sival_ptr = (void *)MARK;
	host_syscall4(__NR_rt_tgsigqueueinfo, host_syscall0(__NR_getpid), tid, SIGSYS,
		      (long)&info);
}

/* A thread of this process that may be in the image, or get there. */
static bool other(struct gate_tcb *tcb)
{
	struct ring3_thread *t = gate_thread(), *its = READ_ONCE(tcb->thread);

	return __atomic_load_n(&tcb->busy, __ATOMIC_ACQUIRE) && its && its != t &&
	       its->proc == t->proc;
}

static bool quiet(bool grace_over)
{
	struct gate_tcb *tcb;
	u32 i;

	for (i = 0; (tcb = thread_area(i)); i++) {
		if (!other(tcb) || __atomic_load_n(&tcb->parked, __ATOMIC_ACQUIRE))
			continue;
		if (!grace_over || READ_ONCE(tcb->thread->inside))
			return false;
	}
	return true;
}

void stop_others(void)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb;
	bool any = false;
	u64 start;
	u32 i, nobody;

	for (;;) {
		nobody = 0;
		if (__atomic_compare_exchange_n(&stopper, &nobody, t->tid, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			break;
		if (nobody == t->tid)
			return;			/* already done by us */
		stop_park();
		nap(100000);			/* a process that shares our memory: its turn */
	}
	WRITE_ONCE(stop_proc, t->proc);
	for (i = 0; (tcb = thread_area(i)); i++) {
		if (other(tcb)) {
			send(tcb);
			any = true;
		}
	}
	if (!any) {
		/* May be a vfork child: leave nothing behind in its parent's memory. */
		WRITE_ONCE(stopper, 0);
		return;
	}
	start = clock_ns();
	while (!quiet(clock_ns() - start > GRACE_NS)) {
		if (clock_ns() - start > LIMIT_NS) {
			gate_log("a thread does not come out of the node; ending the process anyhow");
			break;
		}
		nap(50000);
	}
}

void stop_undo(void)
{
	WRITE_ONCE(stopper, 0);
	host_syscall3(__NR_futex, (long)&stopper, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

/* In a child with memory of its own: whoever was stopping, is not here. */
void stop_forked(void)
{
	stopper = 0;
}
