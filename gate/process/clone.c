// SPDX-License-Identifier: GPL-2.0
/*
 * clone.c - new threads and processes
 *
 * A new thread or vfork child shares this memory, so it starts on an area of its own, with a copy of the program's
 * context that its creator makes. A fork child (fork.c) has a copy of the memory, and returns from the same call.
 * For both, the image makes the task first; then the thread sets GS, the backstop and the tid in its thread block
 * before it can get a signal. A signal that the host never blocks (SIG_FORCED) and that arrives before GS is set is
 * raised again (signal_newborn()).
 */
#include "process/clone.h"
#include <linux/prctl.h>

#define CLONE_IMAGE	(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | \
			 CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUSER)

struct child {
	struct ring3_thread *thread;
	struct gate_tcb *tcb;
	struct ucontext *uc;
	u64 flags;
	u64 numbers;		/* gate_life.numbers() before the image made its task */
	u64 wanted;		/* where the program wants the child's tid, or 0: see own_parent_tid() */
};

/* A copy of the program's context, with its FP state, at the top of the child's altstack. */
static struct ucontext *context_copy(const struct ucontext *from, struct gate_tcb *tcb)
{
	const char *fp = (const char *)from->uc_mcontext.fpstate;
	u64 at = (u64)tcb->altstack + ALTSTACK_BYTES;
	struct ucontext *uc;
	u64 size = 0;

	if (fp)
		size = fp_bytes(fp);
	at = (at - size) & ~63UL;
	uc = (struct ucontext *)((at - sizeof(*uc)) & ~15UL);
	*uc = *from;
	if (fp) {
		memcpy((void *)at, fp, size);
		uc->uc_mcontext.fpstate = (void *)at;
	}
	uc->uc_stack = tcb_altstack(tcb);
	uc->uc_sigmask &= ~SIG_FORCED;
	uc->uc_mcontext.rax = 0;
	uc->uc_mcontext.rcx = uc->uc_mcontext.rip;
	return uc;
}

/* Writes CLONE_PARENT_SETTID's word. As on Linux, a bad address is ignored. */
static void put_tid(u64 wanted, s32 tid)
{
	if (unlikely(wanted))
		gate_copy_out((void *)wanted, &tid, sizeof(tid));
}

/* A child that shares this memory starts here, on its gate stack, with all signals blocked. */
void gate_child_start(void *arg)
{
	struct child *child = arg;
	struct ring3_thread *t = child->thread;
	struct ucontext *uc = child->uc;

	thread_adopt(t, child->tcb, tcb_call_altstack(child->tcb));
	sim_turn();
	signal_block_all();		/* deferred signals arrive now: signal_newborn() */
	/*
	 * A thread that ends the process signals each tid that it sees. If it has not seen this thread's tid, this
	 * thread sees gate_stopper.
	 */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	stop_park();
	if (!(child->flags & CLONE_THREAD)) {
		proc_started(t);
		limits_forked();
	}
	put_tid(child->wanted, t->tid);
	if (child->flags & CLONE_CLEAR_SIGHAND)
		clear_sighand(child->tcb->sighand);
	if (!(child->flags & (CLONE_FILES | CLONE_THREAD)))
		gate_life.inherit(child->numbers);
	if (!(child->flags & CLONE_VFORK))
		proc_number();	/* threads need it too: F_SETOWN_EX may name one */
	sud_arm();
	stop_park();
	gate_resume(uc);
}

/* The child's handlers: its creator's, or a copy, which is then returned in *copy, too. False: no memory. */
static bool sighand_for(const struct clone *c, struct gate_tcb *ctcb, struct gate_sighand **copy)
{
	struct gate_sighand *ours = gate_tcb()->sighand, *sh;

	ctcb->sighand = ours;
	if (c->flags & CLONE_SIGHAND)
		return true;
	sh = gate_alloc(sizeof(*sh));
	if (!sh)
		return false;
	*sh = *ours;
	sh->lock.word = 0;
	ctcb->sighand = *copy = sh;
	return true;
}

/*
 * Fills in the child's area; returns the argument of gate_child_start(). That is on the child's gate stack, since
 * the creator's is used further.
 */
static struct child *child_prepare(struct clone *c, struct gate_tcb *ctcb)
{
	struct child *there = (struct child *)((u64)(ctcb->stack_top - sizeof(*there)) & ~15UL);
	struct gate_tcb *tcb = gate_tcb();
	struct ring3_thread *t = c->thread;

	*there = (struct child){ .thread = t, .tcb = ctcb, .flags = c->flags, .numbers = c->numbers,
				 .wanted = c->wanted, .uc = context_copy(c->r->uctx, ctcb) };
	if (c->stack)
		there->uc->uc_mcontext.rsp = c->stack;
	ctcb->forced_mask = tcb->forced_mask;
	ctcb->own_gs = tcb->own_gs;
	ctcb->borrowed = !(c->flags & CLONE_THREAD);
	ctcb->lent = !!(c->flags & CLONE_VFORK);
	ctcb->node_uid = tcb->node_uid;
	ctcb->node_gid = tcb->node_gid;
	ctcb->one_id = tcb->one_id;
	ctcb->own_users = tcb->own_users;
	if (c->flags & CLONE_NEWUSER)
		sim_ids_nested(ctcb);
	ctcb->child_set_tid = tcb->child_set_tid;
	ctcb->child_clear_tid = tcb->child_clear_tid;
	seccomp_inherit(ctcb, tcb);
	if (c->flags & CLONE_VFORK)
		ctcb->alt = tcb->alt;
	if (c->nr == __NR_clone3) {
		c->req.args.stack = page_start(there) - GATE_PAGE;
		c->req.args.stack_size = (u64)there - c->req.args.stack;
	} else {
		c->a[1] = (long)there;
	}
	memset(t->gate, 0, sizeof(t->gate));
	thread_words(t, ctcb);
	if (gate.sim && (c->flags & CLONE_VFORK))
		WRITE_ONCE(t->gate[WORD_VFORK], gate_thread()->tid);
	return there;
}

static long clone_shared(struct clone *c)
{
	struct gate_tcb *tcb = gate_tcb(), *ctcb;
	struct ring3_thread *t = c->thread;
	struct gate_sighand *sh = NULL;
	struct child *there;
	u64 mask;
	long ret;

	ctcb = tcb_new(t, c->flags & CLONE_THREAD ? tcb->process :
			  __atomic_add_fetch(&gate.processes, 1, __ATOMIC_SEQ_CST));
	if (!ctcb) {
		task_undo(t);
		return -EAGAIN;
	}
	if (!sighand_for(c, ctcb, &sh)) {
		task_undo(t);
		tcb_free(ctcb);
		return -ENOMEM;
	}
	there = child_prepare(c, ctcb);
	stop_park();
	if (c->flags & CLONE_VFORK)
		WRITE_ONCE(tcb->parked, 1);	/* from here on this thread is in the host */
	patch_threads();
	__atomic_fetch_add(&gate.threads, 1, __ATOMIC_SEQ_CST);
	mask = signal_block_all();
	ret = clone_raw(c, there);
	WRITE_ONCE(tcb->parked, 0);
	if (ret > 0 && gate.sim) {
		sim_begin(t, ret);
		if (c->flags & CLONE_VFORK)
			sim_vfork_wait(t, ret, gate_thread()->tid);
	}
	if (ret < 0) {
		task_undo(t);
		tcb_free(ctcb);
		gate_free(sh);
		__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST);
	} else if (c->flags & CLONE_VFORK) {
		/* The child has executed a program or ended. */
		if (ctcb->scratch)
			gate_pages_free(ctcb->scratch, ctcb->scratch_size);
		if (__atomic_exchange_n(&ctcb->busy, 0, __ATOMIC_SEQ_CST))
			__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST);
		gate_free(sh);
	}
	signal_set_mask(mask);
	return ret;
}

/*
 * The pid of a new process must be in its ring3_proc before the process runs (it may die). The host stores
 * CLONE_PARENT_SETTID's word before that, so the gate points it there. Returns the address where the program wants
 * it, to be filled in later (put_tid()), or 0.
 */
static u64 own_parent_tid(struct ring3_thread *t, u64 *flags, u64 *parent_tid)
{
	u64 wanted = *flags & CLONE_PARENT_SETTID ? *parent_tid : 0;

	if (*flags & CLONE_THREAD)
		return 0;
	*flags |= CLONE_PARENT_SETTID;
	*parent_tid = (u64)&proc_of(t)->pid;
	return wanted;
}

/* Has the host clone3() for this process? */
static bool host_has_clone3(void)
{
	static u32 known;	/* 1: no; 2: yes */

	if (unlikely(!READ_ONCE(known)))
		WRITE_ONCE(known, host_syscall2(__NR_clone3, 0, 0) == -ENOSYS ? 1 : 2);
	return READ_ONCE(known) == 2;
}

/*
 * clone() has one argument for the address of the pidfd and that of CLONE_PARENT_SETTID, which the gate needs
 * (own_parent_tid()): so the call becomes a clone3(). Not if clone3() would allow something that clone() refuses,
 * nor if the host refuses clone3() (a container's filter, a sandbox's). In virtual time every clone becomes a clone3(), which
 * can set the tid: sim_clone_number().
 */
static bool clone_anew(struct clone *c)
{
	struct clone_args *args = &c->req.args;
	u64 flags = (u32)c->flags;
	bool pidfd = flags & CLONE_PIDFD;

	if (likely(!pidfd && !gate.sim) ||
	    (flags & CLONE_DETACHED) || (pidfd && (flags & (CLONE_PARENT_SETTID | CLONE_THREAD))) ||
	    !host_has_clone3())
		return false;
	args->flags = flags & ~(u64)CSIGNAL;
	if (pidfd)
		args->pidfd = c->a[2];
	else
		args->parent_tid = c->a[2];
	args->child_tid = c->a[3];
	/* A child with CLONE_PARENT ends with the exit signal of its creator. */
	args->exit_signal = flags & CLONE_PARENT ? 0 : flags & CSIGNAL;
	args->tls = c->a[4];
	return true;
}

/*
 * Processes share handlers in their gates only, see disposition.c. Flags that Linux refuses are left for it to
 * refuse.
 */
static u64 host_flags(u64 flags)
{
	u64 those;

	if (gate.region)
		flags &= ~(u64)CLONE_UNTRACED;	/* the node's adopter traces all threads; a debugger's choice is the host's */
	if (gate.sim)
		flags &= ~((u64)CLONE_VFORK | CSIGNAL);	/* the parent waits, and is told of the child's end, in the node */
	if (gate.region && (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VFORK)
		flags &= ~(u64)CLONE_VFORK;	/* see vfork_wait() */
	those = flags & (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_CLEAR_SIGHAND);

	if (likely(those != (CLONE_VM | CLONE_SIGHAND)))
		return flags;
	signal_share(gate_tcb()->sighand);
	return flags & ~(u64)CLONE_SIGHAND;
}

/*
 * A host that has no clone3() for this process, such as a sandbox's: clone() has most of it. What it has not is ENOSYS, as there, and
 * mistakes are told as Linux tells them.
 */
static long clone_as_before(struct clone *c)
{
	const struct clone_args *args = &c->req.args;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(c->req.more) && c->size > sizeof(*args); i++)
		if (c->req.more[i])
			return -E2BIG;
	if ((c->flags & (CLONE_DETACHED | (CSIGNAL & ~(u64)CLONE_NEWTIME))) || c->flags >> 34 ||
	    (c->flags & (CLONE_SIGHAND | CLONE_CLEAR_SIGHAND)) == (CLONE_SIGHAND | CLONE_CLEAR_SIGHAND) ||
	    (args->exit_signal && (c->flags & (CLONE_THREAD | CLONE_PARENT))) || args->exit_signal > SIGNALS)
		return -EINVAL;
	/* CLONE_CLEAR_SIGHAND is done by the child's gate. */
	if (c->flags >> 33 || (c->flags & CLONE_NEWTIME) || (c->size > CLONE_ARGS_SIZE_VER0 && args->set_tid_size) ||
	    (c->flags & (CLONE_PIDFD | CLONE_PARENT_SETTID)) == (CLONE_PIDFD | CLONE_PARENT_SETTID))
		return -ENOSYS;
	c->nr = __NR_clone;
	c->flags |= args->exit_signal;
	c->a[2] = c->flags & CLONE_PIDFD ? args->pidfd : args->parent_tid;
	c->a[3] = args->child_tid;
	c->a[4] = args->tls;
	return 0;
}

/*
 * Where there is no clone3(), the gate opens the pidfd once there is a child: that argument of clone() is taken, and without its pid a
 * child would keep its descriptors open if its parent were killed meanwhile. Descriptors and the address are tried before. What Linux
 * refuses is left for it to refuse.
 */
static long pidfd_later(struct clone *c)
{
	s32 fd;

	if (likely(!(c->flags & CLONE_PIDFD)) || c->nr == __NR_clone3 ||
	    (c->flags & (CLONE_PARENT_SETTID | CLONE_THREAD | CLONE_DETACHED)))
		return 0;
	fd = host_syscall2(__NR_pidfd_open, host_syscall0(__NR_getpid), 0);
	if (fd < 0)
		return fd;
	host_syscall1(__NR_close, fd);
	if (gate_copy_out((void *)c->a[2], &fd, sizeof(fd)))
		return -EFAULT;
	c->pidfd = c->a[2];
	c->a[2] = 0;
	c->flags &= ~(u64)CLONE_PIDFD;
	return 0;
}

/* -1: another thread has waited for the child or has taken the last descriptor, or the child's end is ignored. */
static void put_pidfd(u64 at, s32 pid)
{
	s32 fd = host_syscall2(__NR_pidfd_open, pid, 0);

	if (fd < 0)
		fd = -1;
	gate_copy_out((void *)at, &fd, sizeof(fd));
}

/* Reads the request of the program; 0 or an error. */
static long clone_read(struct clone *c, struct gate_regs *r)
{
	*c = (struct clone){
		.r = r, .nr = __NR_clone, .size = sizeof(c->req.args),
		.a = { r->a[0], r->a[1], r->a[2], r->a[3], r->a[4] },
	};
	switch (r->nr) {
	case __NR_fork:
	case __NR_vfork:
		c->flags = SIGCHLD | (r->nr == __NR_vfork ? CLONE_VM | CLONE_VFORK : 0);
		c->a[1] = c->a[2] = c->a[3] = c->a[4] = 0;
		if (gate.sim && clone_anew(c))
			c->nr = __NR_clone3;
		break;
	case __NR_clone:
		c->flags = (u32)r->a[0];
		c->stack = r->a[1];
		c->a[1] = 0;
		if (clone_anew(c))
			c->nr = __NR_clone3;
		break;
	default:
		c->nr = __NR_clone3;
		c->size = r->a[1];
		if (c->size < CLONE_ARGS_SIZE_VER0)
			return -EINVAL;
		if (c->size > sizeof(c->req))
			return -E2BIG;
		if (gate_copy_in(&c->req, (void *)r->a[0], c->size))
			return -EFAULT;
		c->flags = c->req.args.flags;
		if (!c->req.args.stack != !c->req.args.stack_size)
			return -EINVAL;
		c->stack = c->req.args.stack ? c->req.args.stack + c->req.args.stack_size : 0;
		c->req.args.stack = c->req.args.stack_size = 0;
		if (unlikely(!host_has_clone3())) {
			long ret = clone_as_before(c);

			if (ret)
				return ret;
		}
	}
	return (c->flags & CLONE_THREAD) && !(c->flags & CLONE_VM) ? -EINVAL : 0;
}

/* fork() and vfork() are clones with fixed flags; some flags are added. */
static void clone_for_host(struct clone *c)
{
	bool asked_anew = c->r->nr == __NR_clone3 && c->nr == __NR_clone3;

	c->flags &= ~(u64)CLONE_NEWNET;		/* network namespaces are the node's (ns.c) */
	c->flags = sim_clone(gate_tcb(), c->flags, asked_anew ? c->req.args.child_tid : (u64)c->a[3]);
	if (c->nr == __NR_clone3) {
		c->wanted = own_parent_tid(c->thread, &c->flags, (u64 *)&c->req.args.parent_tid);
		if (gate.sim)
			c->req.args.exit_signal = 0;
		c->req.args.flags = host_flags(c->flags) & ~(asked_anew ? 0 : (u64)CSIGNAL);
		if (gate.sim)
			sim_clone_number(&c->req.args, &c->size, c->thread, &c->number);
		c->a[0] = (long)&c->req;
		c->a[1] = c->size;
	} else {
		c->wanted = own_parent_tid(c->thread, &c->flags, (u64 *)&c->a[2]);
		c->a[0] = host_flags(c->flags);
	}
}

long gate_clone(struct gate_regs *r)
{
	struct clone c;
	long ret = clone_read(&c, r);

	if (ret)
		return ret;
	if (gate_life.refuses_ns(c.flags))
		return -EPERM;
	ret = pidfd_later(&c);
	if (ret)
		return ret;
	if ((c.flags & CLONE_FILES) && !(c.flags & CLONE_THREAD))
		gate_exe_path();	/* the child's exec may replace the GATE_FD_PROGRAM of this process */
	if (!(c.flags & CLONE_THREAD))
		gate_life.shared();
	c.stamp = gate_life.stamp();
	c.numbers = gate_life.numbers();
	ret = image_call2(RING3_NR_CLONE, c.flags & CLONE_IMAGE, 0);
	if (HOST_IS_ERR(ret))
		return ret;
	c.thread = (struct ring3_thread *)ret;
	if ((c.flags & (CLONE_VM | CLONE_THREAD)) == CLONE_VM)
		limits_fork(proc_of(c.thread));	/* for a child with memory of its own: clone_fork() */
	clone_for_host(&c);
	ret = c.flags & CLONE_VM ? clone_shared(&c) : clone_fork(&c);
	/*
	 * A child that shares this memory has written it. If this thread has waited for the child, the program may
	 * have changed the word since.
	 */
	if (ret > 0 && (c.flags & (CLONE_VM | CLONE_VFORK)) != (CLONE_VM | CLONE_VFORK))
		put_tid(c.wanted, ret);
	if (unlikely(c.pidfd) && ret > 0)
		put_pidfd(c.pidfd, ret);
	/* If this thread is killed before this, the keeper looks because of its death. */
	if (ret > 0 && !(c.flags & CLONE_THREAD))
		procs_changed();
	return ret;
}
