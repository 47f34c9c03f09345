// SPDX-License-Identifier: GPL-2.0
/*
 * sim.c - threads and processes of a node in virtual time
 *
 * One thread of the node runs at a time: include/ring3.abi. A thread that waits in this file sleeps in the node's kernel.
 */
#include "internal.h"
#include "ring3_lock.h"
#include <linux/sched.h>

#define NAP_FIRST_NS	10000UL		/* of virtual time */
#define NAP_MAX_NS	1000000UL
#define LOOK_FIRST_NS	1000000UL
#define LOOK_LAST_NS	100000000000UL

#define SIM_TRAP	(1ull << 63)	/* TURN_TRAP of kernel/arch/ring3/turn/turn.h */
#define SIM_DAY		(1ull << 62)	/* TURN_DAY there */

/* As in kernel/arch/ring3/turn/turn.h. */
#define MARK_PREEMPT	0x7233ull
#define MARK_SHIFT	48

/* As in kernel/arch/ring3/turn/jitter.c. */
#define JITTER_OFTEN	8
#define JITTER_SELDOM	256
#define JITTER_LONG	20

bool sim_on(void)
{
	return gate.sim;
}

/* Sleeps in the node between two checks of something that raises no event there; longer each time. */
void sim_nap(u64 *ns)
{
	*ns = *ns ? *ns * 2 : NAP_FIRST_NS;
	if (*ns > NAP_MAX_NS)
		*ns = NAP_MAX_NS;
	image_call1(RING3_NR_HOST_WAIT, *ns);
}

/* Waits until another thread may have changed something, at most `most' ns. */
void sim_wait(u64 *ns, u64 most)
{
	*ns = !*ns ? LOOK_FIRST_NS : *ns * 2 < LOOK_LAST_NS ? *ns * 2 : LOOK_LAST_NS;
	image_call2(RING3_NR_HOST_WAIT, *ns < most ? *ns : most, most == ~0ull);
}

void sim_changed(void)
{
	if (READ_ONCE(gate.region->host_waiters))
		image_call0(RING3_NR_HOST_CHANGED);
}

/* Lets real time pass, which must not change a run: kernel/arch/ring3/turn/jitter.c. */
void sim_jitter(void)
{
	u64 us = gate.region->jitter_us, drawn;
	struct timespec ts;

	if (likely(!us))
		return;
	host_syscall2(__NR_clock_gettime, CLOCK_MONOTONIC, (long)&ts);
	drawn = (ts.tv_sec * 1000000000ull + ts.tv_nsec) * 0x9e3779b97f4a7c15ull >> 24;
	if (!(drawn % JITTER_SELDOM))
		us *= JITTER_LONG;
	else if (drawn % JITTER_OFTEN)
		return;
	us = (drawn >> 8) % us;
	ts = (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
	host_syscall2(__NR_nanosleep, (long)&ts, 0);
}

/* A breakpoint of `ring3 sim --gdb', or a step of it: the image waits until the debugger lets it go on (turn/debug.c). */
bool sim_trap(struct ucontext *uc)
{
	u64 (*trap)(u64 rip, void *regs) = (void *)gate.fixup;

	return trap(uc->uc_mcontext.rip | SIM_TRAP, &uc->uc_mcontext);
}

/* The clock of the day of the thread's host, in ns. It costs no virtual time, as a call would: sim_file.c. */
u64 sim_day(void)
{
	u64 (*day)(u64 what, void *none) = (void *)gate.fixup;

	return day(SIM_DAY, NULL);
}

/*
 * KEEP says that the thread computes for long: kernel/arch/ring3/turn/patience.c. If the thread is in the program it is to wait in
 * HOST_WAIT, which understands this value. Else it makes a call just now, and the signal means nothing.
 */
bool sim_is_preempted(const siginfo_t *info, u64 *value)
{
	*value = (u64)info->si_value.sival_ptr;
	return gate.sim && info->si_signo == SIGBUS && info->si_code == SI_QUEUE && *value >> MARK_SHIFT == MARK_PREEMPT;
}

/* A new thread, before it does anything that others could see. */
void sim_turn(void)
{
	struct gate_tcb *tcb;

	if (likely(!gate.sim))
		return;
	image_call0(RING3_NR_TURN);
	tcb = gate_tcb();
	tcb->clear_tid = tcb->child_clear_tid;
	if (tcb->child_set_tid)
		gate_copy_out((void *)tcb->child_set_tid, &gate_thread()->tid, sizeof(s32));
}

/*
 * The words for a thread's number are written and cleared in its turn: the host would do so before or after
 * it. Returns the flags that are left for the host.
 */
u64 sim_clone(struct gate_tcb *tcb, u64 flags, u64 child_tid)
{
	if (!gate.sim)
		return flags;
	tcb->child_set_tid = flags & CLONE_CHILD_SETTID ? child_tid : 0;
	tcb->child_clear_tid = flags & CLONE_CHILD_CLEARTID ? child_tid : 0;
	return flags & ~(u64)(CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID);
}

/* set_tid_address(): at the end of the thread the node clears the word, and wakes the threads that wait there. */
long sim_set_tid_address(struct gate_regs *r, gate_handler otherwise)
{
	gate_tcb()->clear_tid = r->a[0];
	return host_syscall0(__NR_gettid);
}

/* Chooses the child's number, so that two runs have the same: the host's next one depends on its other processes. */
void sim_clone_number(struct clone_args *args, size_t *size, const struct ring3_thread *t, s32 *number)
{
	gate_tcb()->clone_number = 0;
	if (args->set_tid_size || !t->ret)
		return;
	gate_tcb()->clone_number = (u64)number;
	*number = t->ret;
	args->set_tid = (u64)number;
	args->set_tid_size = 1;
	if (*size < CLONE_ARGS_SIZE_VER1)
		*size = CLONE_ARGS_SIZE_VER1;
}

/* The host has refused the clone. If the number was the reason (no PID namespace of our own, or in use): again without it? */
bool sim_clone_again(struct clone_args *args, long error)
{
	if (!gate.sim || !args->set_tid_size || args->set_tid != gate_tcb()->clone_number || (error != -EPERM && error != -EEXIST))
		return false;
	args->set_tid = args->set_tid_size = 0;
	return true;
}

/* Ends the thread's task. A thread that joins this one continues when the host has ended it: sim_exit(). */
void sim_exit_task(int code)
{
	struct ring3_thread *t = gate_thread();

	gate_life.sim_ends(false);
	WRITE_ONCE(t->gate[WORD_LEFT], 1);
	image_call3(RING3_NR_EXIT, code, gate_tcb()->clear_tid, &t->gate[WORD_LEFT]);
}

/* The last call but one of a thread. From here on others may reuse its memory, the program's and the gate's. */
void sim_exit(void)
{
	if (unlikely(gate.sim)) {
		sim_jitter();
		host_syscall1(__NR_set_tid_address, (long)&gate_thread()->gate[WORD_LEFT]);
	}
}

/* The host has made the thread `tid', whose block is t. */
void sim_begin(struct ring3_thread *t, s32 tid)
{
	WRITE_ONCE(t->tid, tid);
	WRITE_ONCE(t->nr, RING3_NR_TURN);	/* the call that it is about to make, or has made */
	sim_jitter();
	image_call1(RING3_NR_NUMBER, t);
	image_call2(RING3_NR_BEGIN, t, tid);
}

/* Waits until the child executes a program or ends: then it removes this thread's number from its block. */
void sim_vfork_wait(struct ring3_thread *t, s32 tid, u64 own)
{
	u64 nap = 0;

	while (READ_ONCE(t->gate[WORD_VFORK]) == own && READ_ONCE(t->tid) == (u32)tid && t->task)
		sim_wait(&nap, ~0ull);
}

/* A program of the node has sent SIGKILL: the process ends in the node first. */
void sim_killed(void)
{
	WRITE_ONCE(gate_thread()->nsig, 0);
	gate_life.sim_ends(true);
	image_call1(RING3_NR_EXIT_GROUP, RING3_BY_SIGNAL | SIGKILL);
	for (;;)
		host_syscall2(__NR_kill, host_syscall0(__NR_getpid), SIGKILL);
}

/*
 * A call of the node, since KEEP counts what a thread computes between two of them: the signal of a preemption that came during
 * the exec would find the host's default, which kills. PREEMPTION_LEAST of ring3/sim is more than an exec takes.
 */
void sim_exec_begins(void)
{
	image_call0(__NR_getpid);
}

/*
 * A thread that has executed a program has the turn. Its number is now that of the process. Before the exec it may have
 * been another one, which vcpu->owner still has (unless the keeper's thread took its owner for dead).
 */
void sim_exec_number(const struct ring3_thread *t)
{
	r3_step(&gate.region->vcpu[0].owner, t->tid, host_syscall0(__NR_gettid));
}

/*
 * The first call after exec, made as soon as faults in the image are caught. Each call may have to wait at its end. A task
 * whose thread the host has ended must not get the turn meanwhile, since it would never give it back: EXEC ends these tasks
 * first. gate_start() makes the call once more when the node knows the credentials; its other parts change nothing then.
 */
void sim_exec_alone(void)
{
	image_call0(RING3_NR_EXEC);
}

/* The node announces the ends of children, so it has to know the disposition of SIGCHLD. A new program has no handlers. */
void sim_start(void)
{
	struct host_sigaction act = { .handler = gate_tcb()->sighand->action[SIGCHLD].handler };
	u64 mask = 0;

	gate.nap = sim_nap;
	sim_changed();		/* a vfork parent waits for this; others for what the exec has closed */
	if (act.handler != (u64)SIG_IGN)
		act.handler = (u64)SIG_DFL;
	image_call(__NR_rt_sigaction, SIGCHLD, (long)&act, 0, sizeof(u64), 0, 0);
	host_syscall4(__NR_rt_sigprocmask, SIG_BLOCK, 0, (long)&mask, sizeof(mask));
	image_call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask), 0, 0);
}
