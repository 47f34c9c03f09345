// SPDX-License-Identifier: GPL-2.0
/* process.c - tasks: switch, first frame, idle, and the loop of a program's thread */
#include <linux/cpu.h>
#include <linux/idr.h>
#include <linux/kernel.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/time64.h>
#include <linux/reboot.h>
#include <linux/resume_user_mode.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/syscalls.h>
#include <linux/tick.h>
#include <asm/ring3.h>
#include <asm/switch_to.h>
#include <asm/syscall.h>
#include <asm/unistd.h>
#include "errand.h"
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

#ifndef CONFIG_SMP
struct task_struct *ring3_current = &init_task;
#endif

struct task_struct *__switch_to_asm(struct task_struct *prev, struct task_struct *next);
void ring3_ret_from_fork(void);

struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next)
{
	ring3_deadline_check();
#ifdef CONFIG_SMP
	struct ring3_stack *from = ring3_stack(), *to = task_stack_page(next);

	to->percpu = from->percpu;
	to->vcpu = from->vcpu;
	to->cpu = from->cpu;
	WRITE_ONCE(from->vcpu->task, (unsigned long)next);
#else
	ring3_current = next;
#endif
	return __switch_to_asm(prev, next);
}

/*
 * The node's own threads get pids from here on (the first of them is kthreadd; pid 1 came before), so that the pids
 * of processes are free for them (task.c): in a PID namespace of the host, these begin at 1.
 */
#define OWN_PIDS	(3 << 20)

static void number_from_above(void)
{
	pid_max = PID_MAX_LIMIT;
	idr_set_cursor(&init_pid_ns.idr, OWN_PIDS);
}

int copy_thread(struct task_struct *p, const struct kernel_clone_args *args)
{
	unsigned long top = (unsigned long)task_stack_page(p) + THREAD_SIZE - 64;
	struct parked_frame *frame = (struct parked_frame *)top - 1;

	/* A program's fork() does not get here: the gate's CLONE names a function. */
	if (!args->fn)
		return -ENOSYS;
	if (args->kthread && pid_max != PID_MAX_LIMIT)
		number_from_above();
	*frame = (struct parked_frame) {
		.bx = (unsigned long)args->fn,
		.bp = (unsigned long)args->fn_arg,
		.ip = (unsigned long)ring3_ret_from_fork,
	};
	p->thread.sp = (unsigned long)frame;
#ifdef CONFIG_SMP
	struct ring3_stack *foot = task_stack_page(p);

	foot->task = p;
	foot->irq_enabled = 0;		/* as after any switch */
#endif
	p->thread.tb = NULL;
	p->thread.proc = NULL;
	if (args->fn == ring3_task_main) {
		p->thread.tb = args->fn_arg;
		p->thread.proc = (struct ring3_proc *)p->thread.tb->proc;
		p->thread.tb->task = (unsigned long)p;
		ring3_place_task(p, p->thread.tb);
	}
	return 0;
}

void flush_thread(void)
{
}

/*
 * Idle. First polls with the tick running, since stopping and restarting the tick costs more than the wait for a
 * busy peer. Only then is the vCPU released.
 */
void arch_cpu_idle_enter(void)
{
	if (need_resched() || READ_ONCE(ring3_pending))
		return;
	/*
	 * In a later turn of the idle loop the tick is stopped, and an interrupt in between may have used up its
	 * deadline. The task may stay parked here, so set the next one.
	 */
	if (tick_nohz_tick_stopped()) {
		tick_nohz_idle_stop_tick();
		/*
		 * A thread that goes home at once must do so from arch_cpu_idle(), where links are armed: without
		 * the tick no thread looks at them otherwise.
		 */
		if (r3t_call(ring3_driver) == R3_CALL_DONE)
			return;
	}
	if (IS_ENABLED(CONFIG_RING3_SIM))
		return;
	ring3_park(R3_PARK_POLL, NULL);
	ring3_service();
}

void arch_cpu_idle(void)
{
	if (READ_ONCE(ring3_pending) || need_resched())
		return;
	if (IS_ENABLED(CONFIG_RING3_SIM)) {
		turn_idle();
	} else {
		ring3_tick_or_timer();
		ring3_park(R3_PARK_SLEEP, NULL);
	}
	/* Pending interrupts are served when do_idle() enables them. */
}

/*
 * Not earlier: for RCU and lockdep no kernel code runs in arch_cpu_idle(), and waking a task takes locks and reads
 * memory that RCU frees.
 */
void arch_cpu_idle_exit(void)
{
	ring3_service();
}

#ifdef CONFIG_SMP
bool ring3_yield_is_wanted(void)
{
	return READ_ONCE(ring3_this_cpu->yield_wanted);
}
#else
u32 ring3_yield_wanted;
#endif

/*
 * The scheduler shares the vCPU among tasks. But a thread that drives for others wants to go home, and threads
 * outside want to enter. Each tick checks for that.
 */
void ring3_yield(void)
{
	WRITE_ONCE(*ring3_yield_word(), 0);
	ring3_park(R3_PARK_YIELD, NULL);
	ring3_service();
}

/* A thread has just resumed this task: it may have brought a call or a signal. */
void ring3_service(void)
{
	struct ring3_thread *tb = ring3_driver;
	unsigned long request = r3t_request(tb);

	if (unlikely(host_load(&tb->word) & RING3_WORD_COME)) {
		r3_word_clear(&tb->word, RING3_WORD_COME);
		if (tb->task)
			wake_up_process((struct task_struct *)tb->task);
	}
	if (request) {
		struct task_struct *task = (struct task_struct *)tb->task;

		r3t_request(tb) = 0;
		if (unlikely(!task)) {
			/* Killed while its thread waited for the vCPU: the call is not made. */
			tb->ret = -ESRCH;
			r3t_call(tb) = R3_CALL_DONE;
			request = 0;
		}
		if (request & R3_REQ_CALL)
			wake_up_process(task);
		if (request & R3_REQ_COPIED)
			wake_up_process(task);
		/* A call of the fast path waits with R3_CALL_NONE. */
		if ((request & R3_REQ_SIGNAL) && r3t_call(tb) != R3_CALL_DONE)
			set_notify_signal(task);
	}
	if (!arch_irqs_disabled() && READ_ONCE(ring3_pending))
		ring3_irq_run();
}

/* The work that a usual kernel does between the end of a call and user mode. */
static void exit_work(struct ring3_thread *tb)
{
	unsigned long flags;

	while ((flags = READ_ONCE(current_thread_info()->flags)) & _TIF_EXIT_WORK) {
		if (r3t_flags(tb) & R3_F_KILL)
			return;
		if (flags & _TIF_NEED_RESCHED)
			schedule();
		ring3_take_signals(tb, true);
		turn_stopped(tb);
		if (flags & _TIF_NOTIFY_RESUME)
			resume_user_mode_work(NULL);
		if (flags & _TIF_RESTORE_SIGMASK)
			restore_saved_sigmask();
	}
}

/*
 * Links are unarmed, so calls have to look at them now and then. Not each call: a flood would be received, and
 * dropped, before the program that reads it gets a turn. The program gets twice the time that receiving took, up to
 * this limit, which bounds how long a packet waits there.
 */
#define EXIT_POLL_NS	(50ULL * NSEC_PER_USEC)

static void exit_poll(void)
{
	struct ring3_cpu *cpu = ring3_this_cpu;
	u64 now = ring3_clock(), end;
	u32 ready;

	/* KEEP may have no CPU to raise the timer; the clock has been read anyway. */
	if (now >= READ_ONCE(ring3_this_vcpu->deadline))
		host_or(&ring3_pending, RING3_IRQ_TIMER);
	if (now < cpu->next_poll)
		return;
	ready = ring3_poll_ready();
	if (!ready)
		return;
	host_or(&ring3_pending, ready);
	ring3_irq_run();
	end = ring3_clock();
	cpu->next_poll = end + min(2 * (end - now), EXIT_POLL_NS);
}

/*
 * The call has its result, but something is pending. Returns true if the result took another way than through the
 * caller's frames; then the caller's stack is cut back to ring3_task_main().
 */
bool ring3_exit_slow(struct ring3_thread *tb, long ret)
{
	r3t_outside(tb) = 0;
	exit_work(tb);
	if (READ_ONCE(ring3_this_vcpu->polled) & R3_EXIT_POLL)
		exit_poll();
	if (READ_ONCE(ring3_pending) && !arch_irqs_disabled())
		ring3_irq_run();
#ifdef CONFIG_SMP
	/* Between two calls a task holds no RCU reference, and a task with many calls never switches. */
	rcu_note_context_switch(false);
#endif

	tb->ret = ret;
	if (r3t_flags(tb) & R3_F_KILL)
		return true;
	if (!turn_go_home(tb))
		return true;
	if (ring3_driver != tb) {
		/* Its own thread sleeps (or polls its word): hands it the result. */
		r3t_call(tb) = R3_CALL_NONE;
		ring3_thread_notify(tb, RING3_WORD_DONE);
		return true;
	}
	if (!IS_ENABLED(CONFIG_RING3_SIM) && ring3_this_cpu->tick_new)
		ring3_tick_or_timer();
	ring3_settle(ring3_this_vcpu, false);
	if ((!single_task_running() || turn_carries(tb)) && !turn_is_kept(tb)) {
		/*
		 * Other tasks are runnable, and only this thread can run them. The task sleeps; the thread goes
		 * home when no task is left to run.
		 */
		r3t_call(tb) = R3_CALL_DONE;
		set_current_state(TASK_INTERRUPTIBLE);
		schedule();
		__set_current_state(TASK_RUNNING);
		return true;
	}
	r3t_outside(tb) = 1;
	return false;
}

/*
 * The task of a program's thread. A call runs here if it came by the slow path; on the fast path it runs below the
 * frame that is parked here (entry.S).
 */
int ring3_task_main(void *arg)
{
	struct ring3_thread *tb = arg;
	long ret;

	if (r3t_flags(tb) & R3_F_FRESH)
		sys_close_range(0, ~0U, 0);
	for (;;) {
		ring3_service();
		if (r3t_flags(tb) & R3_F_KILL) {
			do_exit(0);
		}
		if (r3t_call(tb) == R3_CALL_WANT) {
			r3t_call(tb) = R3_CALL_RUN;
			if (!r3t_host_pid(tb)) {
				r3t_host_pid(tb) = R3T_NO_PID;
				ring3_take_number(tb);
			}
			ret = ring3_dispatch(tb);
			if (!ring3_exit_slow(tb, ret)) {
				/* Not parked yet: ring3_park() sets it, if it is reached. */
				r3t_outside(tb) = 0;
				r3t_call(tb) = R3_CALL_DONE;
			}
			continue;
		}
		/* Its thread waits for its first turn: ring3_sys_begin(). */
		if (IS_ENABLED(CONFIG_RING3_SIM) && r3t_call(tb) == R3_CALL_RUN) {
			if (turn_go_home(tb))
				r3t_call(tb) = R3_CALL_DONE;
			continue;
		}
		if (ring3_driver == tb && ((single_task_running() && !turn_carries(tb)) ||
					   (turn_is_kept(tb) && r3t_call(tb) == R3_CALL_DONE))) {
			ring3_park(R3_PARK_OUTSIDE, NULL);
			r3t_outside(tb) = 0;
			continue;
		}
		/* Others need the vCPU. The task's thread is outside, or leaves when all tasks are idle. */
		set_current_state(TASK_INTERRUPTIBLE);
		if (signal_pending(current)) {
			__set_current_state(TASK_RUNNING);
			ring3_take_signals(tb, false);
			continue;
		}
		if (r3t_call(tb) != R3_CALL_WANT && !(r3t_flags(tb) & R3_F_KILL))
			schedule();
		__set_current_state(TASK_RUNNING);
	}
}

void machine_restart(char *cmd)
{
	ring3_poison("reboot asked for inside the node");
}

void machine_halt(void)
{
	ring3_poison("halt asked for inside the node");
}

void machine_power_off(void)
{
	ring3_poison("power-off asked for inside the node");
}

/* Programs are traced on the host; tasks of the node have no registers to show. */
long arch_ptrace(struct task_struct *child, long request, unsigned long addr,
		 unsigned long data)
{
	return -EIO;
}

void ptrace_disable(struct task_struct *child)
{
}

void user_enable_single_step(struct task_struct *child)
{
}

void user_disable_single_step(struct task_struct *child)
{
}
