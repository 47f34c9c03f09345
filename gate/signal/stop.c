// SPDX-License-Identifier: GPL-2.0
/*
 * stop.c - brings the process's other threads out of the image before the host ends or stops them
 *
 * Theory of operation
 * -------------------
 * exit_group, execve and death by a signal end all other threads wherever they are, and SIGTSTP stops them. In
 * kernel code that would poison the node, or hold it up. So the thread that starts this, the stopper, first stores
 * its tid in gate_stopper, and sends each other thread a SIGBUS with a mark, which no thread can block. A thread
 * outside of the image parks in the handler. A thread inside (thread->inside) has its wait interrupted, and parks
 * on its way out.
 *
 * That is not enough: a thread without a CPU parks only when it gets one, and a new thread has no tid yet to send a
 * signal to. So a thread that enters the image sets thread->inside, reads gate_stopper, and parks instead of
 * entering if that is set (image_call(), entry.S). No fence is needed between the two steps: membarrier() executes
 * one on all threads that run, and interrupts them. After it, a thread that is not inside can only park. When no
 * thread is inside, the host may end or stop them.
 *
 * Why SIGBUS: of each signal below 32 the host queues one, and drops further ones. If a fault is dropped because a
 * mark is pending, the instruction faults again. A dispatched call (SIGSYS) would be lost; and a thread that lost
 * its CPU with a pending SIGSYS would never get the mark. A dropped mark is sent again.
 *
 * Another process may share this memory, before or after (CLONE_VM without CLONE_THREAD). So these words name the
 * process they are about, by a number that is never reused; its entry in procs[] is. A process that ends or
 * executes a program, in memory that another process shares, can't clear gate_stopper while it has threads there.
 * The host clears the word when the last of them is gone, as the address of set_tid_address().
 *
 * tests/src/bin/models has a model of all this, which is checked in all interleavings.
 *
 * A parked thread may hold any gate_mutex. So no mutex may be taken between stop_others() and the end, or
 * stop_undo() if the process continues (a failed execve, SIGCONT).
 */
#include "internal.h"
#include "ring3_lock.h"
#include "tuning.h"
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>

#define MARK		0x72696e67330073ULL
#define MARK_SIGNAL	SIGBUS

u32 gate_stopper;		/* futex: tid of the stopper, or 0 */
static u64 stop_process;	/* ... and its process, as in struct gate_tcb */
static u64 stop_tid_word;	/* the word that the host cleared at the thread's end before; 1: it was not changed */

/* The stopper, if it is another thread of this process, or 0. */
static u32 stopped_by(const struct ring3_thread *t)
{
	u32 s = READ_ONCE(gate_stopper);

	return s != t->tid && READ_ONCE(stop_process) == gate_tcb()->process ? s : 0;
}

/* Called with thread->inside set. True: the process is ending; inside is cleared again, and the thread has waited. */
bool stop_entering(struct ring3_thread *t)
{
	if (!stopped_by(t))
		return false;
	WRITE_ONCE(t->inside, 0);
	stop_park();
	return true;
}

/* Will this thread's block be taken away? */
bool stop_ending(void)
{
	return stopped_by(gate_thread());
}

/* Waits while another thread of this process is the stopper. */
void stop_park(void)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();
	u32 s;

	WRITE_ONCE(tcb->stop, 0);
	while ((s = stopped_by(t))) {
		__atomic_store_n(&tcb->parked, 1, __ATOMIC_RELEASE);
		host_syscall4(__NR_futex, (long)&gate_stopper, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, s, 0);
	}
	WRITE_ONCE(tcb->parked, 0);
}

bool stop_is_mark(const siginfo_t *info)
{
	return info->si_code == SI_QUEUE && info->si_value.sival_ptr == (void *)MARK;
}

/* In the handler of MARK_SIGNAL: is this signal a mark for this process? */
bool stop_signal(const siginfo_t *info)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();

	/* If RLIMIT_SIGPENDING is used up, the host sends the signal without mark and sender. */
	if (!stop_is_mark(info) &&
	    !(info->si_code == SI_USER && !info->si_pid && stopped_by(t)))
		return false;
	if (!READ_ONCE(t->inside)) {
		stop_park();
		return true;
	}
	WRITE_ONCE(tcb->stop, 1);
	WRITE_ONCE(t->sigpending, 1);
	r3_word_set(&t->word, RING3_WORD_SIGNAL);
	return true;
}

static void send_mark(struct gate_tcb *tcb)
{
	u32 tid = READ_ONCE(tcb->thread->tid);
	siginfo_t info;

	if (!tid)
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = MARK_SIGNAL;
	info.si_code = SI_QUEUE;
	info.si_value.sival_ptr = (void *)MARK;
	host_syscall4(__NR_rt_tgsigqueueinfo, host_syscall0(__NR_getpid), tid, MARK_SIGNAL,
		      (long)&info);
}

/* Another thread of this process that may be in the image, or enter it. */
static bool other(struct gate_tcb *tcb)
{
	struct ring3_thread *t = gate_thread(), *its = READ_ONCE(tcb->thread);

	return __atomic_load_n(&tcb->busy, __ATOMIC_ACQUIRE) && its && its != t &&
	       tcb->process == gate_tcb()->process && its->proc == t->proc;
}

/* True if this process has no other thread. Only this thread could change that. */
static bool alone(void)
{
	struct gate_tcb *tcb;
	u32 i;

	for (i = 0; (tcb = thread_area(i)); i++)
		if (other(tcb))
			return false;
	return true;
}

static void mark_all(void)
{
	struct gate_tcb *tcb;
	u32 i;

	for (i = 0; (tcb = thread_area(i)); i++)
		if (other(tcb))
			send_mark(tcb);
}

/* True if no thread is inside. Sends a mark again to each that is, if `again'. */
static bool quiet(bool again)
{
	struct gate_tcb *tcb;
	bool all = true;
	u32 i;

	for (i = 0; (tcb = thread_area(i)); i++) {
		if (!other(tcb) || __atomic_load_n(&tcb->parked, __ATOMIC_ACQUIRE) ||
		    !READ_ONCE(tcb->thread->inside))
			continue;
		if (again)
			send_mark(tcb);
		all = false;
	}
	return all;
}

/* From here on all threads of this process read gate_stopper before they are inside. */
static void fence(void)
{
	if (host_syscall3(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0))
		host_nap(STOP_FENCE_NS);
}

/* Asks the host to clear gate_stopper when this thread has left this memory. */
static void clear_at_end(void)
{
	stop_tid_word = 1;
	if (likely(READ_ONCE(gate.processes) == 1))
		return;
	if (!host_syscall2(__NR_prctl, PR_GET_TID_ADDRESS, (long)&stop_tid_word))
		host_syscall1(__NR_set_tid_address, (long)&gate_stopper);
}

/* False: a thread is still in the image, and the process must not be stopped there. */
static bool stop_and_wait(void)
{
	struct ring3_thread *t = gate_thread();
	u64 start, marked, now;
	u32 nobody;

	/* In a vfork child these words are its parent's, which may be dead: the child stops no thread. */
	if (alone())
		return true;
	if (gate.sim)
		return true;	/* in virtual time: they wait for their turn, and run nothing */
	for (;;) {
		nobody = 0;
		if (__atomic_compare_exchange_n(&gate_stopper, &nobody, t->tid, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			break;
		if (nobody == t->tid)
			return true;		/* this thread has done it already */
		stop_park();
		host_nap(100000);			/* the stopper is a process that shares this memory: wait for it */
		/* It was killed before it reached clear_at_end(). */
		if (host_syscall2(__NR_tkill, nobody, 0) == -ESRCH)
			__atomic_compare_exchange_n(&gate_stopper, &nobody, 0, false, __ATOMIC_SEQ_CST,
						    __ATOMIC_SEQ_CST);
	}
	WRITE_ONCE(stop_process, gate_tcb()->process);
	clear_at_end();
	mark_all();
	fence();
	for (start = marked = now = gate_clock_ns(CLOCK_MONOTONIC); !quiet(now - marked > STOP_AGAIN_NS); now = gate_clock_ns(CLOCK_MONOTONIC)) {
		if (now - marked > STOP_AGAIN_NS)
			marked = now;
		if (now - start > STOP_LIMIT_NS)
			return false;
		host_nap(50000);
	}
	return true;
}

void stop_others(void)
{
	if (!stop_and_wait())
		gate_log("a thread does not come out of the node; ending the process anyhow");
}

/* For a process that continues afterwards: call stop_undo() in any case, even if the result is false. */
bool stop_others_for_now(void)
{
	return stop_and_wait();
}

void stop_undo(void)
{
	if (READ_ONCE(gate_stopper) != gate_thread()->tid)
		return;			/* no other thread was stopped: gate_stopper is another process's */
	if (stop_tid_word != 1)
		host_syscall1(__NR_set_tid_address, stop_tid_word);
	WRITE_ONCE(stop_process, 0);	/* otherwise our threads would take the next stopper for one of this process */
	WRITE_ONCE(gate_stopper, 0);
	host_syscall3(__NR_futex, (long)&gate_stopper, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

/* The process ends: clears the word that the host would have cleared for the program. */
void stop_final(void)
{
	u32 nobody = 0;

	if (READ_ONCE(gate_stopper) != gate_thread()->tid || stop_tid_word == 1 || !stop_tid_word)
		return;
	gate_copy_out((void *)stop_tid_word, &nobody, sizeof(nobody));
	host_syscall3(__NR_futex, stop_tid_word, FUTEX_WAKE, 1);
}

/* In a child with memory of its own: the stopper is not in the child. */
void stop_forked(void)
{
	gate_stopper = 0;
}
