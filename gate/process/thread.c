// SPDX-License-Identifier: GPL-2.0
/*
 * thread.c - the first and the last steps of threads and processes. clone.c makes them, area.c has their memory
 */
#include "process/clone.h"
#include <linux/futex.h>

/* entry.S reads both words at once. */
_Static_assert(THREAD_NSIG == THREAD_SIGPENDING + 4, "ring3.abi");
_Static_assert(offsetof(struct gate_regs, stub) == REGS_STUB, "asm_defs.h");
_Static_assert(offsetof(struct gate_regs, uctx) == REGS_BYTES, "asm_defs.h");

/* The words that a signal handler finds by GS. */
void thread_words(struct ring3_thread *t, struct gate_tcb *tcb)
{
	t->gate[WORD_STACK] = (u64)tcb->stack_top;
	t->gate[WORD_ENTER] = gate.enter;
	t->gate[WORD_TCB] = (u64)tcb;
}

/*
 * Makes this host thread the thread of t and tcb. The tid is set last: a thread that ends the process sends a
 * signal to each tid that it sees (stop.c), and the handler needs all the rest. Until the program's context is
 * loaded, a fault in the image must not be delivered on the stack that holds it: alt.
 */
void thread_adopt(struct ring3_thread *t, struct gate_tcb *tcb, stack_t alt)
{
	host_syscall2(__NR_arch_prctl, ARCH_SET_GS, (long)t);
	thread_words(t, tcb);
	host_syscall2(__NR_sigaltstack, (long)&alt, 0);
	WRITE_ONCE(t->tid, host_syscall0(__NR_gettid));
	WRITE_ONCE(tcb->tid, t->tid);
}

struct ring3_thread *null_thread_new(void)
{
	struct ring3_thread *t = gate_alloc(sizeof(*t));

	t->self = (u64)t;
	t->fdmap = (u64)gate_pages(sizeof(struct ring3_fdmap));
	t->proc = (u64)gate_alloc(sizeof(struct ring3_proc));
	return t;
}

/* The keeper scans procs[] when procs_gen changes. */
void procs_changed(void)
{
	if (!gate.region)
		return;
	__atomic_fetch_add(&gate.region->procs_gen, 1, __ATOMIC_SEQ_CST);
	host_syscall3(__NR_futex, (long)&gate.region->procs_gen, FUTEX_WAKE, 0x7fffffff);
}

/*
 * A new process. Mostly the host has written its pid, see own_parent_tid(), and its parent announces it: to wake
 * the keeper takes a while, which is better not spent in the child. True: the parent did not know the pid.
 */
bool proc_started(struct ring3_thread *t)
{
	if (READ_ONCE(proc_of(t)->pid))
		return false;
	WRITE_ONCE(proc_of(t)->pid, host_syscall0(__NR_getpid));
	procs_changed();
	return true;
}

/*
 * ... and its first call, which may be any: in it the task gets the pid or tid of the process or thread
 * (kernel/task.c), so that other programs can name it to the node. A vfork child gets it in exec. A child with
 * memory of its own would have to fault in pages of the node for this call, so its parent makes it
 * (number_child()).
 */
void proc_number(void)
{
	image_call0(__NR_getpid);
}

/* CLONE_CLEAR_SIGHAND has reset the gate's handlers as well: installs them again. */
void clear_sighand(struct gate_sighand *sh)
{
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++)
		if (sh->action[sig].handler != (u64)SIG_IGN)
			memset(&sh->action[sig], 0, sizeof(sh->action[sig]));
	signal_install(sh);
}

/* The host refused the clone: ends the task that the image has made. */
void task_undo(struct ring3_thread *t)
{
	t->tid = gate_thread()->tid;
	image_call_as(t, RING3_NR_EXIT, 0);
	WRITE_ONCE(t->tid, 0);		/* no thread's: the block can be reused */
}

/* Called before any other process can learn the number from this one. */
void number_child(struct ring3_thread *t)
{
	if (gate.region)
		image_call1(RING3_NR_NUMBER, t);
}

/* ---- exit ---- */

/* The thread's task ends; after that only gate_exit() is allowed. */
void gate_exit_task(struct gate_regs *r)
{
	signal_block_all();
	stat_flush();
	vfork_done(gate_thread());
	if (unlikely(gate.sim))
		sim_exit_task(r->a[0]);
	else
		image_call1(RING3_NR_EXIT, r->a[0]);
}

long gate_exit(struct gate_regs *r)
{
	struct gate_tcb *tcb = gate_tcb();

	sim_exit();
	/* A vfork child's area is freed by its parent (clone_shared). */
	if (tcb->lent)
		gate_exit_raw(r->a[0], &tcb->parked);
	if (__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST) == 1 && gate_debug)
		counts_print();
	gate_exit_raw(r->a[0], &tcb->busy);
}

/*
 * Nothing of this process is left in the node: gives its entry of procs[] back. Otherwise the keeper needs a call
 * of the node for that, after it has been told of the death; it still does if this process is killed before this
 * point, or has other threads. The thread block can be reused as soon as its tid is 0, so that comes last. A tid
 * that stayed in it could be taken for that of another thread.
 */
static void proc_give_back(struct ring3_thread *t, struct ring3_proc *proc)
{
	u32 live = 1;

	if (READ_ONCE(gate.threads) == 1 && !READ_ONCE(proc->threads) &&
	    __atomic_compare_exchange_n(&proc->state, &live, 0, false, __ATOMIC_SEQ_CST,
					__ATOMIC_SEQ_CST))
		WRITE_ONCE(t->tid, 0);
}

long gate_exit_group(struct gate_regs *r)
{
	struct ring3_thread *t = gate_thread();
	struct ring3_proc *proc = proc_of(t);
	long ret;

	signal_block_all();
	if (gate_debug)
		counts_print();
	stat_flush();
	stop_others();
	vfork_done(t);
	if (unlikely(gate.sim))
		gate_life.sim_ends(true);
	ret = image_call1(RING3_NR_EXIT_GROUP, r->a[0] & 0xff);	/* higher bits are flags like RING3_BY_SIGNAL */
	if (unlikely(gate.sim))
		sim_jitter();
	if (!ret && gate.region)
		proc_give_back(t, proc);
	stop_final();
	for (;;)
		host_syscall1(__NR_exit_group, r->a[0]);
}

void counts_print(void)
{
	gate_warn("pid %ld: %lu traps, %lu sites rewritten, %lu left, %lu faults, %lu signals",
		  host_syscall0(__NR_getpid), gate.counts[COUNT_TRAPS], gate.counts[COUNT_SITES],
		  gate.counts[COUNT_REFUSED], gate.counts[COUNT_HLT], gate.counts[COUNT_SIGNALS]);
}
