// SPDX-License-Identifier: GPL-2.0
/*
 * task.c - the turn, seen from tasks: who comes in, what a call costs, what happens when all wait
 */
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "../clock/clock.h"
#include "../vcpu/vcpu.h"
#include "futex.h"
#include "turn.h"

static int programs;			/* tasks of programs that have begun */
static u64 last_turn;			/* when a program got the vCPU last */
static u64 idle_until;			/* the clock as the idle task left it */
bool turn_looked;			/* since then a program has looked at what has not changed, see hostwait.c: no turn */
static u64 stall_s = 10000;		/* ring3_sim_stall=: longer than TCP's longest wait but one */

/* One that is on its way here from the host is no reason for time to pass. */
static void turn_begins(struct ring3_thread *tb)
{
	if (likely(r3t_flags(tb) & R3_F_TURN))
		return;
	r3t_flags(tb) |= R3_F_TURN;
	programs++;
}

void turn_ended(struct ring3_thread *tb)
{
	if (r3t_flags(tb) & R3_F_TURN)
		programs--;
}

/* Threads from outside have come; on the vCPU, in an interrupt. */
void turn_admit(void)
{
	struct ring3_thread *tb;
	unsigned long request;

	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK]) {
		request = r3t_request(tb);
		if (!request || tb == ring3_driver || !tb->task)
			continue;
		r3t_request(tb) = 0;
		if (request & R3_REQ_CALL)
			wake_up_process((struct task_struct *)tb->task);
		if (request & R3_REQ_SIGNAL)
			set_notify_signal((struct task_struct *)tb->task);
	}
}

/* May time pass? Not where nobody is there to see it. */
static bool time_passes(u64 next)
{
	static u64 said;

	if (next == U64_MAX && !programs)
		return false;
	if (host_load(&ring3_region.state) < RING3_UP || r3t_call(&ring3_region.init_thread) == R3_CALL_RUN)
		return next != U64_MAX;
	if (!programs)
		return false;
	if (next != U64_MAX && next - last_turn < stall_s * NSEC_PER_SEC)
		return true;
	if (said != last_turn + 1)
		turn_tell_deadlock(last_turn);
	said = last_turn + 1;
	return false;
}

#define PATIENCE	10000		/* turns, where there is always one that can run */

static void admit_keeper(struct ring3_vcpu *vcpu)
{
	WRITE_ONCE(turn_comers, 0);
	host_or(vcpu_pending(vcpu), RING3_IRQ_COMER);
}

/* No task can run. */
void turn_idle(void)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	u64 next = ring3_clock_next(vcpu);

	/* Calls of the fast path do not come by turn_go_home(), but they cost something. */
	if (ring3_clock() != idle_until && !turn_looked)
		last_turn = ring3_clock();
	turn_looked = false;
	idle_until = ring3_clock();
	if (unlikely(READ_ONCE(turn_comers))) {
		admit_keeper(vcpu);
		return;
	}
	if (!time_passes(next)) {
		ring3_park(R3_PARK_SLEEP, NULL);
		return;
	}
	if (next > ring3_clock())
		ring3_clock_jump(next);
	idle_until = ring3_clock();
	host_or(vcpu_pending(vcpu), RING3_IRQ_TIMER);
}

/*
 * A call is over: what it cost passes for its thread. For all, where nobody else has anything to do meanwhile;
 * else the task sleeps so long, and others run.
 */
static void charge(struct ring3_thread *tb)
{
	u64 cost = turn_cost(tb->nr, current->pid);
	u64 until = ring3_clock() + cost;
	ktime_t sleep = ns_to_ktime(cost);

	if (!cost)
		return;
	if (until < ring3_clock_next(ring3_this_vcpu) && single_task_running()) {
		ring3_clock_jump(until);
		return;
	}
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&sleep, HRTIMER_MODE_REL);
}

/* What a thread makes of calls while it looks whether something of the host's has changed: gate/sim/sim_wait.c, again() of sim_call.c. */
static bool is_look(u64 nr)
{
	switch (nr) {
	case __NR_clock_gettime:
	case __NR_poll:
	case __NR_ppoll:
	case __NR_select:
	case __NR_pselect6:
	case __NR_epoll_wait:
	case __NR_epoll_pwait:
	case __NR_epoll_pwait2:
		return true;
	}
	return false;
}

/*
 * The thread gets the vCPU. No turn is a look at what has not changed, whether the look's calls are seen here (order.c) or take
 * the fast path.
 */
static void note_turn(struct ring3_thread *tb)
{
	if (tb->nr == RING3_NR_HOST_WAIT && tb->ret) {
		r3t_flags(tb) |= R3_F_LOOKS;
		return;
	}
	if ((r3t_flags(tb) & R3_F_LOOKS) && is_look(tb->nr))
		return;
	r3t_flags(tb) &= ~R3_F_LOOKS;
	last_turn = ring3_clock();
	r3t_since(tb) = last_turn;
}

bool turn_is_kept(const struct ring3_thread *tb)
{
	return tb->task && tb->proc && tb->proc != (unsigned long)&ring3_region.init_proc;
}

/*
 * The thread drives, and is the keeper's. It must not leave while programs wait for time: nobody else would carry it on. It goes home
 * when a program gets the turn, or where time stands still.
 */
bool turn_carries(const struct ring3_thread *tb)
{
	return programs && !turn_is_kept(tb);
}

/*
 * The call of a program's thread is over: its thread gets the vCPU. False: another thread has ended the process while this one
 * waited for its turn here. Then its thread must not go home: it would run the program beside whose turn it is, without a task.
 */
bool turn_go_home(struct ring3_thread *tb)
{
	static u32 waited;

	if (!turn_is_kept(tb))
		return true;
	turn_begins(tb);
	if (unlikely(READ_ONCE(turn_comers)) && ++waited > PATIENCE) {
		waited = 0;
		admit_keeper(ring3_this_vcpu);
	}
	if (unlikely(turn_traces))
		turn_trace(tb->nr, tb->tid, tb->ret);
	charge(tb);
	note_turn(tb);
	while (ring3_driver != tb && !(r3t_flags(tb) & R3_F_KILL) && !ring3_proc_dead((struct ring3_proc *)tb->proc))
		ring3_park(R3_PARK_HANDOVER, tb);
	return !(r3t_flags(tb) & R3_F_KILL);
}

/* The process, or its last thread, ends: who is next waits for the host to say so. */
void turn_leaves(struct ring3_thread *tb)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;

	if (proc == &ring3_region.init_proc)
		return;
	turn_leaving = proc->pid;
	ring3_sys_host_changed();	/* its locks and the ends that it has had: who goes on waits for the host to drop them */
}

/*
 * The calling thread ends. What Linux does then, at which others wait: robust futexes, and the word that it clears.
 * Without an mm exit_mm_release() would not do the second.
 */
void turn_thread_leaves(struct ring3_thread *tb, u32 __user *clear, u32 *left)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;
	struct turn_key key;

	turn_futex_leaves();
	if (clear && !put_user(0, clear) && !turn_key_of(clear, false, &key))
		turn_wake_some(&key, 1, FUTEX_BITSET_MATCH_ANY);
	if (!left)
		return;
	/* The host does not clear the word where nobody else has the memory. */
	if (proc->threads == 1) {
		turn_leaves(tb);
		return;
	}
	turn_leaving_thread = tb;
	turn_leaving_word = left;
}

#define NUMBERS_FROM	1000	/* below are those of the keeper, and of who came from outside */
#define NUMBERS_TO	32000	/* of 32768 that any host has */

/* The host would count its other threads, too. */
int turn_number(void)
{
	static int next = NUMBERS_FROM;

	if (next == NUMBERS_TO)
		next = NUMBERS_FROM;
	return next++;
}

/* BEGIN(thread, tid): the host has made the thread of that task; it gets its first turn like any other. */
long ring3_sys_begin(struct ring3_thread *child, int tid)
{
	struct ring3_thread *tb;
	long ret = -ESRCH;

	if (tid <= 0)
		return -EINVAL;
	mutex_lock(&ring3_blocks);
	for (tb = ring3_threads; tb && tb != child; tb = (struct ring3_thread *)tb->image_private[R3T_LINK])
		;
	if (tb && tb->task && r3t_call(tb) == R3_CALL_NONE && !(r3t_flags(tb) & R3_F_GONE)) {
		turn_begins(tb);
		tb->tid = tid;
		tb->ret = 0;
		r3t_call(tb) = R3_CALL_RUN;
		wake_up_process((struct task_struct *)tb->task);
		ret = 0;
	}
	mutex_unlock(&ring3_blocks);
	return ret;
}

static int __init set_stall(char *seconds)
{
	return !kstrtou64(seconds, 0, &stall_s);
}
__setup("ring3_sim_stall=", set_stall);

/* ring3_sim_cpu=host: programs see the host's processor; else each host's is the same (gate/sim/sim_cpu.c). */
static int __init set_cpu(char *which)
{
	ring3_region.cpu_of_host = !strcmp(which, "host");
	return 1;
}
__setup("ring3_sim_cpu=", set_cpu);
