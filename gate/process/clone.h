/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clone.h - shared by clone.c, fork.c and thread.c
 */
#ifndef GATE_CLONE_H
#define GATE_CLONE_H

#include "internal.h"
#include <linux/sched.h>

#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND	0x100000000ULL
#endif

/* struct clone_args, with room for fields of later kernels. */
struct clone_request {
	struct clone_args args;
	u64 more[4];
};

/* A call that makes a thread or process. */
struct clone {
	struct gate_regs *r;		/* as the program made the call */
	u64 flags;
	u64 stack;			/* the child's stack, or 0: its parent's */
	struct ring3_thread *thread;	/* the child's thread block, made by the image */
	long nr;			/* the host's call: clone or clone3 ... */
	long a[5];
	struct clone_request req;	/* ... and its argument, */
	size_t size;			/* with this size */
	s32 number;			/* in virtual time: the child's tid, see sim_clone_number() */
	u64 wanted;			/* where the program wants the child's tid, or 0: see own_parent_tid() */
	u64 pidfd;			/* where it wants its pidfd, which the gate opens, or 0: pidfd_later() */
	u64 numbers;			/* gate_life.numbers() and .stamp() before the image made the task */
	u32 stamp;
};

/* Makes the host's call. The child starts at gate_child_start(child); if that is NULL, it returns 0 from here. */
static inline long clone_raw(struct clone *c, void *child)
{
	long ret;

	do
		ret = gate_clone_raw(c->nr, c->a[0], c->a[1], c->a[2], c->a[3], c->a[4], child, c->thread);
	while (unlikely(ret < 0) && c->nr == __NR_clone3 && sim_clone_again(&c->req.args, ret));
	return ret;
}

/* fork.c */
long clone_fork(struct clone *c);	/* a child with memory of its own */

/* thread.c */
static inline struct ring3_proc *proc_of(struct ring3_thread *t)
{
	return (struct ring3_proc *)t->proc;
}
void thread_words(struct ring3_thread *t, struct gate_tcb *tcb);
void procs_changed(void);
bool proc_started(struct ring3_thread *t);
void proc_number(void);
void clear_sighand(struct gate_sighand *sh);
void task_undo(struct ring3_thread *t);
void number_child(struct ring3_thread *t);

#endif /* GATE_CLONE_H */
