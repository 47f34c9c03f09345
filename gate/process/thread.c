// SPDX-License-Identifier: GPL-2.0
/*
 * thread.c - threads, processes and their ends; area.c has what the gate keeps for each
 *
 * A new thread or vfork child shares our memory, so it starts on its own area, with a copy of
 * the program's context made beforehand. A fork child has a copy of everything and
 * simply returns from the same call. In both, the image is asked for the task first,
 * and GS, the backstop and the thread block's tid are set before a signal can come. Those that
 * the host never blocks (SIG_FORCED) are put off where one comes before GS (signal_newborn()).
 */
#include "internal.h"
#include "tuning.h"
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/wait.h>

#define CLONE_IMAGE	(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | \
			 CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWUSER)
#ifndef CLONE_CLEAR_SIGHAND
#define CLONE_CLEAR_SIGHAND	0x100000000ULL
#endif

/* entry.S looks at both at once. */
_Static_assert(THREAD_NSIG == THREAD_SIGPENDING + 4, "ring3.abi");
_Static_assert(offsetof(struct gate_regs, stub) == REGS_STUB, "asm_defs.h");
_Static_assert(offsetof(struct gate_regs, uctx) == REGS_BYTES, "asm_defs.h");

/* What a handler looks for by GS. */
static void thread_words(struct ring3_thread *t, struct gate_tcb *tcb)
{
	t->gate[WORD_STACK] = (u64)tcb->stack_top;
	t->gate[WORD_ENTER] = gate.enter;
	t->gate[WORD_TCB] = (u64)tcb;
}

/*
 * Makes this host thread the one that t and tcb belong to. The tid comes last: who ends the process
 * sends a signal to each tid that it sees (stop.c), for which all else has to be there. Until the program's
 * context is loaded, a fault in the image must not come to the stack that has it: alt.
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

/* ---- clone ---- */

struct child {
	struct ring3_thread *thread;
	struct gate_tcb *tcb;
	struct ucontext *uc;
	u64 flags;
	u64 numbers;		/* gate_life.numbers() before the image made its task */
	u64 wanted;		/* where the program wants its number, or 0: see own_parent_tid() */
};

/* struct clone_args with room for what later kernels add. */
struct clone_request {
	struct clone_args args;
	u64 more[4];
};

/* A copy of the program's context, with its FP state, at the top of the child's altstack. */
static struct ucontext *context_copy(const struct ucontext *from, struct gate_tcb *tcb)
{
	const char *fp = (const char *)from->uc_mcontext.fpstate;
	u64 at = (u64)tcb->altstack + ALTSTACK_BYTES;
	struct ucontext *uc;
	u64 size = 0;

	if (fp)
		size = *(u32 *)(fp + 464) == FP_XSTATE_MAGIC1 ? *(u32 *)(fp + 468) : 512;
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

static struct ring3_proc *proc_of(struct ring3_thread *t)
{
	return (struct ring3_proc *)t->proc;
}

/* The keeper looks at procs[] when procs_gen moves. */
static void procs_changed(void)
{
	if (!gate.region)
		return;
	__atomic_fetch_add(&gate.region->procs_gen, 1, __ATOMIC_SEQ_CST);
	host_syscall3(__NR_futex, (long)&gate.region->procs_gen, FUTEX_WAKE, 0x7fffffff);
}

/*
 * A new process. In all but odd cases the host has written its pid, see own_parent_tid(), and
 * its parent says so: to wake the keeper takes a while, which is better not the child's. True:
 * its parent did not know it.
 */
static bool proc_started(struct ring3_thread *t)
{
	if (READ_ONCE(proc_of(t)->pid))
		return false;
	WRITE_ONCE(proc_of(t)->pid, host_syscall0(__NR_getpid));
	procs_changed();
	return true;
}

/*
 * ... and its first call, any: with that its task gets the number of the process or thread (kernel/task.c),
 * so that others can name it to the node. A vfork child has exec's for that; of one with memory of
 * its own, which would have to fault in the node's for that, its parent says it (number_child()).
 */
static void proc_number(void)
{
	image_call0(__NR_getpid);
}

/* CLONE_CLEAR_SIGHAND took the gate's handlers as well. */
static void clear_sighand(struct gate_sighand *sh)
{
	int sig;

	for (sig = 1; sig <= SIGNALS; sig++)
		if (sh->action[sig].handler != (u64)SIG_IGN)
			memset(&sh->action[sig], 0, sizeof(sh->action[sig]));
	signal_install(sh);
}

/* CLONE_PARENT_SETTID's word. As Linux: what can't be written is not. */
static void put_tid(u64 wanted, s32 tid)
{
	if (unlikely(wanted))
		gate_copy_out((void *)wanted, &tid, sizeof(tid));
}

/* A child that shares our memory starts here, on its gate stack, all signals blocked. */
void gate_child_start(void *arg)
{
	struct child *child = arg;
	struct ring3_thread *t = child->thread;
	struct ucontext *uc = child->uc;

	thread_adopt(t, child->tcb, tcb_call_altstack(child->tcb));
	sim_turn();
	signal_block_all();		/* those that have been put off come now: signal_newborn() */
	/* Who ends the process sends a signal to the tid that it sees; or else we see that it does. */
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
		proc_number();	/* a thread's too: F_SETOWN_EX may name it */
	sud_arm();
	stop_park();
	gate_resume(uc);
}

static void fork_hook(enum gate_fork_phase phase)
{
	struct gate_mutex *sighand = &gate_tcb()->sighand->lock;

	if (phase == GATE_FORK_PREPARE) {
		gate_life.fork(phase);
		seccomp_fork(phase);
		gate_lock(sighand);	/* others deliver signals by it */
		areas_fork(phase);
		gate_lock(&gate_patch_lock);
		gate_lock(&gate_heap_lock);
		return;
	}
	gate_unlock(&gate_heap_lock);
	gate_unlock(&gate_patch_lock);
	areas_fork(phase);
	gate_unlock(sighand);
	seccomp_fork(phase);
	gate_life.fork(phase);
}

/* The host refused: the task that the image made has to go again. */
static void task_undo(struct ring3_thread *t)
{
	t->tid = gate_thread()->tid;
	image_call_as(t, RING3_NR_EXIT, 0);
	WRITE_ONCE(t->tid, 0);		/* nobody's: the block can be used again */
}

/* Before anybody can have it from us. */
static void number_child(struct ring3_thread *t)
{
	if (gate.region)
		image_call1(RING3_NR_NUMBER, t);
}

/*
 * CLONE_VFORK of a child with memory of its own. The host would hold this thread, with all the locks that a fork takes,
 * for as long as the child neither executes a program nor ends; so it is not asked to. The child's gate takes our number
 * out of its thread block instead, in the program that it executes (vfork_done()) and as it ends. Who is killed
 * can't, and is looked after.
 */

static bool child_gone(s32 pid)
{
	siginfo_t info = { 0 };
	long ret;

	ret = host_syscall5(__NR_waitid, 1 /* P_PID */, pid, (long)&info, WEXITED | WNOHANG | WNOWAIT | __WALL, 0);
	if (ret == -ECHILD)	/* another's (CLONE_PARENT), or nobody is asked for it */
		return host_syscall2(__NR_kill, pid, 0) == -ESRCH;
	return !ret && info.si_pid;
}

static void vfork_wait(s32 pid, struct ring3_thread *t, u64 own)
{
	const struct timespec look = { .tv_nsec = VFORK_LOOK_NS };
	u64 *word = &t->gate[WORD_VFORK];

	/* All signals that can be are blocked, as Linux does not look at them here. */
	while (READ_ONCE(*word) == own) {
		if (host_syscall4(__NR_futex, (long)word, FUTEX_WAIT, own, (long)&look) == -ETIMEDOUT &&
		    child_gone(pid))
			break;
	}
}

static long clone_fork(struct gate_regs *r, struct ring3_thread *t, u64 flags, u64 stack,
		       long nr, long a[5], u32 stamp, u64 numbers)
{
	struct gate_tcb *tcb = gate_tcb();
	u64 mask, waits = gate.region && (flags & CLONE_VFORK) ? gate_thread()->tid : 0;
	bool late;
	long ret;

	memset(t->gate, 0, sizeof(t->gate));
	thread_words(t, tcb);
	WRITE_ONCE(t->gate[WORD_VFORK], waits);
	fork_hook(GATE_FORK_PREPARE);
	if (unlikely(gate_life.stamp() != stamp)) {
		/* Another thread has mapped something since the image made the child's task: once more. */
		fork_hook(GATE_FORK_PARENT);
		task_undo(t);
		return -ERESTARTNOINTR;
	}
	mask = signal_block_all();
	do
		ret = gate_clone_raw(nr, a[0], a[1], a[2], a[3], a[4], NULL, t);
	while (unlikely(ret < 0) && nr == __NR_clone3 && sim_clone_again((struct clone_args *)a[0], ret));
	if (ret) {
		fork_hook(GATE_FORK_PARENT);
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
	tcb->thread = t;
	tcb->forced_pending = 0;	/* its parent's; none is noted, see gate_clone_raw() */
	stop_forked();
	thread_adopt(t, tcb, tcb_call_altstack(tcb));
	sim_turn();
	signal_block_all();		/* those that have been put off come now: signal_newborn() */
	late = proc_started(t);
	limits_forked();
	areas_forget(tcb);
	tcb->lent = 0;
	tcb->borrowed = 0;	/* the memory is its own */
	tcb->traceme = 0;
	fork_hook(GATE_FORK_CHILD);
	if (!(flags & CLONE_FILES))
		gate_life.inherit(numbers);
	if (flags & CLONE_CLEAR_SIGHAND)
		clear_sighand(tcb->sighand);
	if (stack)
		r->uctx->uc_mcontext.rsp = stack;
	if (late)
		proc_number();
	sud_arm();
	return 0;
}

static long clone_shared(struct gate_regs *r, struct ring3_thread *t, u64 flags, u64 stack,
			 long nr, long a[5], struct clone_request *req, u64 numbers,
			 u64 wanted)
{
	struct gate_tcb *tcb = gate_tcb(), *ctcb;
	struct gate_sighand *sh = NULL;
	struct child child, *there;
	u64 mask;
	long ret;

	ctcb = tcb_new(t, flags & CLONE_THREAD ? tcb->process :
			  __atomic_add_fetch(&gate.processes, 1, __ATOMIC_SEQ_CST));
	if (!ctcb) {
		task_undo(t);
		return -EAGAIN;
	}
	child = (struct child){ .thread = t, .tcb = ctcb, .flags = flags, .numbers = numbers,
				.wanted = wanted };
	child.uc = context_copy(r->uctx, ctcb);
	if (stack)
		child.uc->uc_mcontext.rsp = stack;
	ctcb->forced_mask = tcb->forced_mask;
	ctcb->borrowed = !(flags & CLONE_THREAD);
	ctcb->lent = !!(flags & CLONE_VFORK);
	ctcb->child_set_tid = tcb->child_set_tid;
	ctcb->child_clear_tid = tcb->child_clear_tid;
	seccomp_inherit(ctcb, tcb);
	if (flags & CLONE_VFORK)
		ctcb->alt = tcb->alt;
	if (flags & CLONE_SIGHAND) {
		ctcb->sighand = tcb->sighand;
	} else {
		sh = gate_alloc(sizeof(*sh));
		if (!sh) {
			task_undo(t);
			tcb_free(ctcb);
			return -ENOMEM;
		}
		*sh = *tcb->sighand;
		sh->lock.word = 0;
		ctcb->sighand = sh;
	}
	/* The child starts on its gate stack; struct child goes there, since ours moves on. */
	there = (struct child *)((u64)(ctcb->stack_top - sizeof(child)) & ~15UL);
	*there = child;
	if (nr == __NR_clone3) {
		req->args.stack = page_start(there) - GATE_PAGE;
		req->args.stack_size = (u64)there - req->args.stack;
	} else {
		a[1] = (long)there;
	}
	memset(t->gate, 0, sizeof(t->gate));
	thread_words(t, ctcb);
	if (gate.sim && (flags & CLONE_VFORK))
		WRITE_ONCE(t->gate[WORD_VFORK], gate_thread()->tid);
	stop_park();
	if (flags & CLONE_VFORK)
		WRITE_ONCE(tcb->parked, 1);	/* until then we are in the host */
	patch_threads();
	__atomic_fetch_add(&gate.threads, 1, __ATOMIC_SEQ_CST);
	mask = signal_block_all();
	do
		ret = gate_clone_raw(nr, a[0], a[1], a[2], a[3], a[4], there, t);
	while (unlikely(ret < 0) && nr == __NR_clone3 && sim_clone_again(&req->args, ret));
	WRITE_ONCE(tcb->parked, 0);
	if (ret > 0 && gate.sim) {
		sim_begin(t, ret);
		if (flags & CLONE_VFORK)
			sim_vfork_wait(t, ret, gate_thread()->tid);
	}
	if (ret < 0) {
		task_undo(t);
		tcb_free(ctcb);
		gate_free(sh);
		__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST);
	} else if (flags & CLONE_VFORK) {
		/* The child has gone its own way: exec or exit. */
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
 * A new process's pid has to be in its ring3_proc before it runs (and may die): by then
 * the host has stored CLONE_PARENT_SETTID's word, so that is pointed there. Returns where
 * the program wanted it, to be filled in later (put_tid()), or 0.
 */
static u64 own_parent_tid(struct ring3_thread *t, u64 *flags, u64 *parent_tid, bool legacy)
{
	u64 wanted = *flags & CLONE_PARENT_SETTID ? *parent_tid : 0;

	if (*flags & CLONE_THREAD)
		return 0;
	if (legacy && (*flags & CLONE_PIDFD)) {
		/* The same argument is the pidfd's address, and there is no clone3() here: the child says it. */
		WRITE_ONCE(proc_of(t)->creator, 0);
		return 0;
	}
	*flags |= CLONE_PARENT_SETTID;
	*parent_tid = (u64)&proc_of(t)->pid;
	return wanted;
}

/*
 * clone() has one argument for the pidfd's address and for CLONE_PARENT_SETTID's, which we need (own_parent_tid()): so it
 * becomes a clone3(). Not where that would make something work that Linux refuses, nor where the host's is out of
 * reach (a container's filter). In virtual time each is one: it has the number, see sim_clone_number().
 */
static bool clone_anew(struct clone_request *req, u64 flags, const long a[5])
{
	bool pidfd = flags & CLONE_PIDFD;

	flags = (u32)flags;
	if (likely(!pidfd && !gate.sim) ||
	    (flags & CLONE_DETACHED) || (pidfd && (flags & (CLONE_PARENT_SETTID | CLONE_THREAD))) ||
	    host_syscall2(__NR_clone3, 0, 0) == -ENOSYS)
		return false;
	req->args.flags = flags & ~(u64)CSIGNAL;
	if (pidfd)
		req->args.pidfd = a[2];
	else
		req->args.parent_tid = a[2];
	req->args.child_tid = a[3];
	/* Who has its parent's parent tells of its end by the signal that the parent has. */
	req->args.exit_signal = flags & CLONE_PARENT ? 0 : flags & CSIGNAL;
	req->args.tls = a[4];
	return true;
}

/* Processes have handlers in common among their gates only, see signal.c. What Linux refuses is left to it. */
static u64 host_flags(u64 flags)
{
	u64 those;

	if (gate.sim)
		flags &= ~((u64)CLONE_VFORK | CSIGNAL);	/* who waits, and is told of the end, waits in the node */
	if (gate.region && (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VFORK)
		flags &= ~(u64)CLONE_VFORK;	/* see vfork_wait() */
	those = flags & (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_CLEAR_SIGHAND);

	if (likely(those != (CLONE_VM | CLONE_SIGHAND)))
		return flags;
	signal_share(gate_tcb()->sighand);
	return flags & ~(u64)CLONE_SIGHAND;
}

long gate_clone(struct gate_regs *r)
{
	long a[5] = { r->a[0], r->a[1], r->a[2], r->a[3], r->a[4] };
	struct clone_request req = { 0 };
	u64 flags, stack = 0, wanted;
	bool new_args = r->nr == __NR_clone3;
	size_t size = sizeof(req.args);
	struct ring3_thread *t;
	u64 numbers;
	u32 stamp;
	s32 number;
	long ret, nr;

	switch (r->nr) {
	case __NR_fork:
	case __NR_vfork:
		flags = SIGCHLD | (r->nr == __NR_vfork ? CLONE_VM | CLONE_VFORK : 0);
		a[1] = a[2] = a[3] = a[4] = 0;
		new_args = gate.sim && clone_anew(&req, flags, a);
		break;
	case __NR_clone:
		flags = (u32)r->a[0];
		stack = r->a[1];
		a[1] = 0;
		new_args = clone_anew(&req, flags, a);
		break;
	default:
		size = r->a[1];
		if (size < CLONE_ARGS_SIZE_VER0)
			return -EINVAL;
		if (size > sizeof(req))
			return -E2BIG;
		if (gate_copy_in(&req, (void *)r->a[0], size))
			return -EFAULT;
		flags = req.args.flags;
		if (!req.args.stack != !req.args.stack_size)
			return -EINVAL;
		stack = req.args.stack ? req.args.stack + req.args.stack_size : 0;
		req.args.stack = req.args.stack_size = 0;
	}
	if ((flags & CLONE_THREAD) && !(flags & CLONE_VM))
		return -EINVAL;
	if (gate_life.refuses_ns(flags))
		return -EPERM;

	if ((flags & CLONE_FILES) && !(flags & CLONE_THREAD))
		gate_exe_path();	/* the child's exec may take our GATE_FD_PROGRAM for its program */
	if (!(flags & CLONE_THREAD))
		gate_life.shared();
	stamp = gate_life.stamp();
	numbers = gate_life.numbers();
	ret = image_call2(RING3_NR_CLONE, flags & CLONE_IMAGE, 0);
	if (HOST_IS_ERR(ret))
		return ret;
	t = (struct ring3_thread *)ret;
	if (!(flags & CLONE_THREAD))
		limits_fork(proc_of(t));
	flags &= ~(u64)CLONE_NEWNET;	/* a network is the node's business alone (ns.c) */
	flags = sim_clone(gate_tcb(), flags, r->nr == __NR_clone3 ? req.args.child_tid : (u64)a[3]);
	if (new_args) {
		wanted = own_parent_tid(t, &flags, (u64 *)&req.args.parent_tid, false);
		if (gate.sim)
			req.args.exit_signal = 0;
		req.args.flags = host_flags(flags) & ~(r->nr == __NR_clone3 ? 0 : (u64)CSIGNAL);
		if (gate.sim)
			sim_clone_number(&req.args, &size, t, &number);
		a[0] = (long)&req;
		a[1] = size;
	} else {
		wanted = own_parent_tid(t, &flags, (u64 *)&a[2], true);
		a[0] = host_flags(flags);
	}
	nr = new_args ? __NR_clone3 : __NR_clone;	/* fork and vfork are clone with flags that we add to */
	if (flags & CLONE_VM)
		ret = clone_shared(r, t, flags, stack, nr, a, &req, numbers, wanted);
	else
		ret = clone_fork(r, t, flags, stack, nr, a, stamp, numbers);
	/* A child that has our memory has done so; what one that we waited for has put there since stays. */
	if (ret > 0 && (flags & (CLONE_VM | CLONE_VFORK)) != (CLONE_VM | CLONE_VFORK))
		put_tid(wanted, ret);
	/* If we are killed before we get here, the keeper looks because of that. */
	if (ret > 0 && !(flags & CLONE_THREAD))
		procs_changed();
	return ret;
}

/* ---- exit ---- */

/* The thread's task ends; after that only gate_exit(). */
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
	/* A vfork child's area is taken back by its parent (clone_shared). */
	if (tcb->lent)
		gate_exit_raw(r->a[0], &tcb->parked);
	if (__atomic_fetch_sub(&gate.threads, 1, __ATOMIC_SEQ_CST) == 1 && gate_debug)
		counts_print();
	gate_exit_raw(r->a[0], &tcb->busy);
}

/*
 * Nothing of this process is left in the node. To give its entry of procs[] back takes the keeper
 * a call of the node, after it has been told that we are dead. If we are killed before this, or where
 * there are other threads, it does so as ever. The thread block is anybody's as soon as it names
 * no thread, so that comes last; a tid that stayed in it could be taken for another's.
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
	ret = image_call1(RING3_NR_EXIT_GROUP, r->a[0] & 0xff);	/* above are marks like RING3_BY_SIGNAL */
	if (!ret && gate.region)
		proc_give_back(t, proc);
	stop_final();
	for (;;)
		host_syscall1(__NR_exit_group, r->a[0]);
}

u32 thread_others(void)
{
	return READ_ONCE(gate.threads) - 1;
}

void counts_print(void)
{
	gate_warn("pid %ld: %lu traps, %lu sites rewritten, %lu left, %lu faults, %lu signals",
		  host_syscall0(__NR_getpid), gate.counts[COUNT_TRAPS], gate.counts[COUNT_SITES],
		  gate.counts[COUNT_REFUSED], gate.counts[COUNT_HLT], gate.counts[COUNT_SIGNALS]);
}
