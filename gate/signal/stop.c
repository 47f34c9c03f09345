// SPDX-License-Identifier: GPL-2.0
/*
 * stop.c - brings the process's other threads out of the image before the host ends them
 *
 * Theory of operation
 * -------------------
 * exit_group, execve and death by a signal end all other threads wherever they
 * are (and SIGTSTP stops them). In kernel code that would poison (or hold up) the
 * node. So the thread that does it first says so in gate_stopper, and sends each of the others a SIGBUS
 * with a mark, which no thread can block. A thread that is outside the image parks in the handler; one
 * that is inside (thread->inside) has its wait cut short and parks on its way out.
 *
 * That is not enough: a thread without a CPU parks only when it has one, and a new thread has no tid yet that
 * a signal could be sent to. So a thread that enters the image sets thread->inside, looks at gate_stopper, and parks
 * instead (image_call(), entry.S). The two steps need no fence: membarrier() puts one into all threads that run,
 * and interrupts them. From then on a thread that is not inside only parks. So no thread of this process is in kernel code
 * any more, and the host may end or stop them.
 *
 * Why SIGBUS: of signals with numbers below 32 the host keeps one of a kind, and drops the second. A
 * fault that is dropped for a mark happens again. A dispatched call (SIGSYS) would not; and a thread that
 * has lost its CPU with one of those pending would never get the mark. Marks that are dropped are sent again.
 *
 * Another process may have this memory too, before or after (CLONE_VM without CLONE_THREAD), so these words
 * say which process they are about, by a number that none has again: its entry in procs[] is the next one's.
 * A process that ends or executes a program, in memory that another has too, can't take gate_stopper back while it has
 * threads there. The host clears the word when the last of them is gone, as the one that set_tid_address() names.
 *
 * tests/src/bin/models has all this as a model, which is tried in all interleavings.
 *
 * Parked threads may hold any gate_mutex, so between stop_others() and the end, or
 * stop_undo() where life goes on after all (a failing execve, SIGCONT), none
 * may be taken.
 */
#include "internal.h"
#include "ring3_lock.h"
#include "tuning.h"
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <linux/prctl.h>

#define MARK		0x72696e67330073ULL
#define MARK_SIGNAL	SIGBUS

u32 gate_stopper;		/* futex: tid of the thread that stops the others, 0: nobody */
static u64 stop_process;	/* ... and its process, as in struct gate_tcb */
static u64 stop_tid_word;	/* what the host was to clear at its end before; 1: nothing is changed */

/* Another thread of this process that is ending it, or 0. */
static u32 stopped_by(const struct ring3_thread *t)
{
	u32 s = READ_ONCE(gate_stopper);

	return s != t->tid && READ_ONCE(stop_process) == gate_tcb()->process ? s : 0;
}

/* thread->inside was set before; where this says yes it is not, and the thread has waited. */
bool stop_entering(struct ring3_thread *t)
{
	if (!stopped_by(t))
		return false;
	WRITE_ONCE(t->inside, 0);
	stop_park();
	return true;
}

/* Is this thread's block being taken away? */
bool stop_ending(void)
{
	return stopped_by(gate_thread());
}

/* Waits while another thread of this process is ending it. */
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

/* The handler of MARK_SIGNAL: is this one ours? */
bool stop_signal(const siginfo_t *info)
{
	struct ring3_thread *t = gate_thread();
	struct gate_tcb *tcb = gate_tcb();

	/* With RLIMIT_SIGPENDING used up the host sends it without the mark, and from nobody. */
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

/* A thread of this process that may be in the image, or get there. */
static bool other(struct gate_tcb *tcb)
{
	struct ring3_thread *t = gate_thread(), *its = READ_ONCE(tcb->thread);

	return __atomic_load_n(&tcb->busy, __ATOMIC_ACQUIRE) && its && its != t &&
	       tcb->process == gate_tcb()->process && its->proc == t->proc;
}

/* Nobody but this thread can change that where it is so. */
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

/* No thread is inside. One that is gets another mark, where `again' says that it is time. */
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

/* From here on all threads of this process see gate_stopper before they are inside. */
static void fence(void)
{
	if (host_syscall3(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0))
		host_nap(STOP_FENCE_NS);
}

/* gate_stopper is the host's to clear when this thread has left this memory. */
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

	/* The words in a vfork child are its parent's, which may be dead: the child stops nobody. */
	if (alone())
		return true;
	if (gate.sim)
		return true;	/* they wait for their turn, and run nothing */
	for (;;) {
		nobody = 0;
		if (__atomic_compare_exchange_n(&gate_stopper, &nobody, t->tid, false, __ATOMIC_SEQ_CST,
						__ATOMIC_SEQ_CST))
			break;
		if (nobody == t->tid)
			return true;		/* already done by us */
		stop_park();
		host_nap(100000);			/* a process that shares our memory: its turn */
		/* Killed before it came to clear_at_end(). */
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

/* For a process that goes on after that: with stop_undo(), where it says no, too. */
bool stop_others_for_now(void)
{
	return stop_and_wait();
}

void stop_undo(void)
{
	if (READ_ONCE(gate_stopper) != gate_thread()->tid)
		return;			/* was alone: what is there is another process's */
	if (stop_tid_word != 1)
		host_syscall1(__NR_set_tid_address, stop_tid_word);
	WRITE_ONCE(stop_process, 0);	/* or our threads take the next stopper for one of ours */
	WRITE_ONCE(gate_stopper, 0);
	host_syscall3(__NR_futex, (long)&gate_stopper, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 0x7fffffff);
}

/* The process ends: what the host would have cleared for the program is cleared here. */
void stop_final(void)
{
	u32 nobody = 0;

	if (READ_ONCE(gate_stopper) != gate_thread()->tid || stop_tid_word == 1 || !stop_tid_word)
		return;
	gate_copy_out((void *)stop_tid_word, &nobody, sizeof(nobody));
	host_syscall3(__NR_futex, stop_tid_word, FUTEX_WAKE, 1);
}

/* In a child with memory of its own: the thread that was stopping others is not here. */
void stop_forked(void)
{
	gate_stopper = 0;
}
