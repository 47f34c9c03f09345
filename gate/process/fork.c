// SPDX-License-Identifier: GPL-2.0
/*
 * fork.c - a child with memory of its own
 *
 * The child has a copy of everything, and returns from the same call. The parent holds all locks meanwhile, so that
 * the copy is consistent. The image has made the child's task before.
 */
#include "process/clone.h"
#include "tuning.h"
#include <linux/futex.h>
#include <linux/wait.h>

static void locks_take(void)
{
	const struct gate_fork *f;

	for (f = gate_life.forks; f->lock || f->child; f++)
		if (f->lock)
			gate_lock(f->lock);
	gate_lock(&gate_tcb()->sighand->lock);	/* other threads deliver signals with it */
}

/* Called by the parent, and by the child on its copy. */
static void locks_give(bool child)
{
	const struct gate_fork *f = gate_life.forks;

	gate_unlock(&gate_tcb()->sighand->lock);
	while (f->lock || f->child)
		f++;
	while (f-- != gate_life.forks) {
		if (child && f->child)
			f->child();
		if (f->lock)
			gate_unlock(f->lock);
	}
}

/*
 * CLONE_VFORK of a child with memory of its own. The host would block this thread, with all the locks that a fork
 * takes, until the child executes a program or ends. So the gate removes the flag, and waits itself. The child's
 * gate removes the parent's tid from its thread block: in the program that it executes (vfork_done()), or as it
 * ends. A child that is killed can't do that, so the parent checks from time to time whether it still exists.
 */

static bool child_gone(s32 pid)
{
	siginfo_t info = { 0 };
	long ret;

	ret = host_syscall5(__NR_waitid, 1 /* P_PID */, pid, (long)&info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
	if (ret == -ECHILD)	/* a child of another process (CLONE_PARENT), or one whose parent ignores SIGCHLD */
		return host_syscall2(__NR_kill, pid, 0) == -ESRCH;
	return !ret && info.si_pid;
}

static void vfork_wait(s32 pid, struct ring3_thread *t, u64 own)
{
	const struct timespec look = { .tv_nsec = VFORK_LOOK_NS };
	u64 *word = &t->gate[WORD_VFORK];

	/* All signals but the forced ones are blocked: Linux does not deliver signals in this wait, either. */
	while (READ_ONCE(*word) == own) {
		if (host_syscall4(__NR_futex, (long)word, FUTEX_WAIT, own, (long)&look) == -ETIMEDOUT &&
		    child_gone(pid))
			break;
	}
}

/* The child, which still has copies of the parent's words. */
static void child_begins(struct clone *c)
{
	struct gate_tcb *tcb = gate_tcb();
	bool late;

	patch_forked(tcb->thread);
	tcb->thread = c->thread;
	tcb->forced_pending = 0;	/* they are the parent's; none is noted, see gate_clone_raw() */
	stop_forked();
	thread_adopt(c->thread, tcb, tcb_call_altstack(tcb));
	sim_turn();
	signal_block_all();		/* deferred signals arrive now: signal_newborn() */
	late = proc_started(c->thread);
	if (gate.yama)
		node_let_trace();
	limits_forked();
	areas_forget(tcb);
	tcb->lent = 0;
	tcb->borrowed = 0;	/* the memory is its own */
	tcb->traceme = 0;
	if (c->flags & CLONE_NEWUSER)
		sim_ids_nested(tcb);
	locks_give(true);
	if (!(c->flags & CLONE_FILES))
		gate_life.inherit(c->numbers);
	if (c->flags & CLONE_CLEAR_SIGHAND)
		clear_sighand(tcb->sighand);
	if (c->stack)
		c->r->uctx->uc_mcontext.rsp = c->stack;
	if (late)
		proc_number();
	sud_arm();
}

long clone_fork(struct clone *c)
{
	u64 mask, waits = gate.region && (c->flags & CLONE_VFORK) ? gate_thread()->tid : 0;
	struct ring3_thread *t = c->thread;
	long ret;

	patch_forks();
	memset(t->gate, 0, sizeof(t->gate));
	thread_words(t, gate_tcb());
	WRITE_ONCE(t->gate[WORD_VFORK], waits);
	locks_take();
	if (unlikely(gate_life.stamp() != c->stamp)) {
		/* Another thread has mapped something since the image made the child's task: start again. */
		locks_give(false);
		task_undo(t);
		return -ERESTARTNOINTR;
	}
	limits_fork(proc_of(t));	/* with the limits that the host copies */
	mask = signal_block_all();
	ret = clone_raw(c, NULL);
	if (ret) {
		locks_give(false);
		if (ret < 0)
			task_undo(t);
		else
			number_child(t);
		if (ret > 0 && gate.sim) {
			sim_begin(t, ret);
			if (waits)
				sim_vfork_wait(t, ret, waits);
			waits = 0;
		}
		if (ret > 0 && waits) {
			procs_changed();
			vfork_wait(ret, t, waits);
		}
		signal_set_mask(mask);
		return ret;
	}
	child_begins(c);
	return 0;
}
