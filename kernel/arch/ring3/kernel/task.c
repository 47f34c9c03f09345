// SPDX-License-Identifier: GPL-2.0
/*
 * task.c - the tasks of threads and processes: how they begin and end
 *
 * A host thread has an ordinary task here, which runs ring3_task_main(). For the rest of the kernel it is not a
 * kernel thread. blocks.c has its thread block.
 */
#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/fdtable.h>
#include <linux/fs_struct.h>
#include <linux/init_task.h>
#include <linux/file.h>
#include <linux/kernel.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/wait.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include "blocks.h"
#include "cred.h"
#include "maps.h"
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

#define REAP_PATIENCE	HZ		/* a killed task ends within microseconds */

/* REAP waits here for the last task of a dead process. */
static DECLARE_WAIT_QUEUE_HEAD(process_over);

static struct ring3_thread *ring3_next_block(struct ring3_thread *tb)
{
	return (struct ring3_thread *)tb->image_private[R3T_LINK];
}

static void procs_changed(void)
{
	host_add(&ring3_region.procs_gen, 1);
	ring3_host_futex_wake(&ring3_region.procs_gen, INT_MAX);
}

/*
 * The task gets its thread's number on the host if that is known and free, so that F_SETOWN, SCM_CREDENTIALS and
 * netlink use the pids that the program sees.
 */
static long start_task(struct ring3_thread *tb, unsigned long flags, int exit_signal,
		       pid_t host_pid)
{
	struct kernel_clone_args args = {
		.flags		= flags,
		.fn		= ring3_task_main,
		.fn_arg		= tb,
		.exit_signal	= exit_signal,
		.set_tid	= &host_pid,
		.set_tid_size	= host_pid > 0 ? 1 : 0,
	};
	pid_t pid = kernel_clone(&args);

	if (pid < 0 && args.set_tid_size) {
		args.set_tid_size = 0;
		pid = kernel_clone(&args);
	}

	if (pid < 0) {
		struct ring3_proc *proc = (struct ring3_proc *)tb->proc;

		ring3_fdmap_put((struct ring3_fdmap *)tb->fdmap);
		mutex_lock(&ring3_blocks);
		ring3_block_gone(tb);
		r3t_host_pid(tb) = R3T_NO_PID;
		tb->tid = 0;
		if (--proc->threads == 0) {
			ring3_proc_emptied(proc);
			ring3_maps_exit((u64)proc);
			host_store(&proc->state, RING3_PROC_FREE);
		}
		mutex_unlock(&ring3_blocks);
		return pid;
	}
	/* The keeper need not look at a process without a pid; the gate announces the pid. */
	if (!(flags & CLONE_THREAD) && host_pid)
		procs_changed();
	return (long)tb;
}

/*
 * A child's task is made before the host has given its process a pid. The task takes that pid when its parent has
 * it from the host, or at its own first call: interfaces that name a process to the node's kernel
 * (/proc/PID/ns/net, IFLA_NET_NS_PID, SCM_CREDENTIALS) use the pid that the program sees. If another process of the
 * node has the number (it is of another PID namespace, or dead and not yet reaped), the task keeps its first one.
 * ring3_blocks is held.
 */
static void take_number(struct ring3_thread *tb, struct task_struct *task)
{
	bool leader = thread_group_leader(task);
	pid_t number = leader ? ((struct ring3_proc *)tb->proc)->pid : (pid_t)tb->tid;
	const struct cred *cred;
	struct pid *pid;

	if (number <= 0 || number == task->pid)
		return;
	cred = override_creds(&init_cred);	/* choosing a pid takes a privilege */
	pid = alloc_pid(current->nsproxy->pid_ns_for_children, &number, 1);
	revert_creds(cred);
	if (IS_ERR(pid))
		return;
	write_lock_irq(&tasklist_lock);
	if (leader) {
		change_pid(task, PIDTYPE_TGID, pid);
		task->tgid = number;
	}
	change_pid(task, PIDTYPE_PID, pid);	/* the old one goes with its last reference */
	task->pid = number;
	write_unlock_irq(&tasklist_lock);
}

void ring3_take_number(struct ring3_thread *tb)
{
	mutex_lock(&ring3_blocks);
	take_number(tb, current);
	mutex_unlock(&ring3_blocks);
}

long ring3_sys_number(struct ring3_thread *child)
{
	struct ring3_thread *tb;
	long ret = -ESRCH;

	mutex_lock(&ring3_blocks);
	for (tb = ring3_threads; tb && tb != child; tb = ring3_next_block(tb))
		;
	if (tb && tb->task && !(r3t_flags(tb) & R3_F_GONE) &&
	    !(((struct task_struct *)tb->task)->flags & PF_EXITING)) {
		take_number(tb, (struct task_struct *)tb->task);
		ret = 0;
	}
	mutex_unlock(&ring3_blocks);
	return ret;
}

long ring3_sys_spawn(int host_pid)
{
	struct ring3_fdmap *map;
	struct ring3_proc *proc;
	struct ring3_thread *tb;

	map = ring3_fdmap_new(NULL);
	if (!map)
		return -ENOMEM;
	proc = ring3_proc_alloc(host_pid);
	if (!proc) {
		ring3_fdmap_put(map);
		return -EAGAIN;
	}
	tb = ring3_thread_alloc(proc, map);
	if (!tb) {
		host_store(&proc->state, RING3_PROC_FREE);
		ring3_fdmap_put(map);
		return -ENOMEM;
	}
	r3t_flags(tb) = R3_F_FRESH;
	return start_task(tb, 0, SIGCHLD, host_pid);
}

long ring3_sys_clone(unsigned long flags, int host_pid)
{
	struct ring3_thread *parent = current->thread.tb, *tb;
	struct ring3_fdmap *map = (struct ring3_fdmap *)parent->fdmap;
	struct ring3_proc *proc = (struct ring3_proc *)parent->proc;
	unsigned long keep = flags & (CLONE_FILES | CLONE_FS | CLONE_NEWNET | CLONE_NEWNS |
				      CLONE_NEWUSER);
	bool thread = flags & CLONE_THREAD;
	long ret;

	if (thread)
		keep |= CLONE_THREAD | CLONE_SIGHAND | CLONE_VM | CLONE_FS;
	if (keep & CLONE_FILES) {
		ring3_fdmap_get(map);
	} else {
		map = ring3_fdmap_new(map);
		if (!map)
			return -ENOMEM;
	}
	if (!thread) {
		struct ring3_proc *child = ring3_proc_alloc(host_pid);

		if (!child) {
			ring3_fdmap_put(map);
			return -EAGAIN;
		}
		child->creator = ring3_proc_listed(proc) ? proc - ring3_region.procs + 1 : 0;
		memcpy(child->port_fd, proc->port_fd, sizeof(proc->port_fd));
		ret = ring3_maps_fork((u64)proc, (u64)child, flags & CLONE_VM);
		if (ret) {
			host_store(&child->state, RING3_PROC_FREE);
			ring3_fdmap_put(map);
			return ret;
		}
		proc = child;
	}
	tb = ring3_thread_alloc(proc, map);
	if (!tb) {
		if (!thread) {
			ring3_maps_exit((u64)proc);
			host_store(&proc->state, RING3_PROC_FREE);
		}
		ring3_fdmap_put(map);
		return -ENOMEM;
	}
	tb->ret = turn_number();
	ret = start_task(tb, keep, thread ? 0 : SIGCHLD, host_pid);
	if (!IS_ERR_VALUE(ret) && (keep & CLONE_NEWUSER))
		ring3_map_user_ns((struct task_struct *)tb->task);
	return ret;
}

/* Called by exit_thread(), late in do_exit(): files are closed already. */
void ring3_task_exited(struct ring3_thread *tb)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;
	bool last = false;

	turn_ended(tb);
	mutex_lock(&ring3_blocks);
	ring3_fdmap_put((struct ring3_fdmap *)tb->fdmap);
	tb->fdmap = 0;
	tb->task = 0;
	if (r3t_host_pid(tb) && proc && proc->pid)
		r3t_host_pid(tb) = proc->pid;
	if (proc) {
		if (proc->threads == 1) {
			ring3_maps_exit((u64)proc);
			turn_memory_forget(proc);
		}
		last = proc->threads == 1;
		proc->threads--;
		if (last)
			ring3_proc_emptied(proc);
		/*
		 * A process without a pid has never existed on the host, which refused it: the keeper has nothing
		 * to reap. In virtual time it reaps no process that ends by itself, either: its call would come at
		 * the host's time.
		 */
		if (last && (!proc->pid || (IS_ENABLED(CONFIG_RING3_SIM) && ring3_proc_listed(proc) && !ring3_proc_dead(proc))))
			host_store(&proc->state, RING3_PROC_FREE);
	}
	ring3_block_gone(tb);
	mutex_unlock(&ring3_blocks);
	if (last || IS_ENABLED(CONFIG_RING3_SIM))
		wake_up(&process_over);
}

void exit_thread(struct task_struct *tsk)
{
	struct ring3_thread *tb = tsk->thread.tb;

	/* A task that never ran (a failed copy_process) has nothing to free yet. */
	if (tb && tsk == current) {
		turn_futex_leaves();
		ring3_task_exited(tb);
	}
}

/*
 * The calling thread ends. Its result is set before, since do_exit() does not return; the thread goes home at the
 * next park.
 */
static void settle_exit(struct ring3_thread *tb)
{
	tb->ret = 0;
	if (ring3_driver == tb) {
		r3t_call(tb) = R3_CALL_DONE;
	} else {
		r3t_call(tb) = R3_CALL_NONE;
		ring3_thread_notify(tb, RING3_WORD_DONE);
	}
}

long ring3_sys_exit(int code, u32 __user *clear, u32 *left)
{
	turn_thread_leaves(current->thread.tb, clear, left);
	settle_exit(current->thread.tb);
	do_exit((code & 0xff) << 8);
}

static void kill_thread(struct ring3_thread *tb, unsigned long why)
{
	struct task_struct *task = (struct task_struct *)tb->task;
	unsigned long flags;

	if (!task || (r3t_flags(tb) & R3_F_GONE))
		return;
	r3t_flags(tb) |= R3_F_KILL | why;
	if (lock_task_sighand(task, &flags)) {
		/* A fatal signal for this task only: its waits end, those of its thread group do not. */
		set_tsk_thread_flag(task, TIF_SIGPENDING);
		sigaddset(&task->pending.signal, SIGKILL);
		unlock_task_sighand(task, &flags);
	}
	wake_up_state(task, TASK_NORMAL | __TASK_STOPPED);
	/* On another vCPU it may be the current task, parked outside: no thread would run it there. */
	kick_process(task);
}

static void kill_threads(struct ring3_proc *proc, struct ring3_thread *but, unsigned long why)
{
	struct block *block;

	if (!ring3_proc_listed(proc))		/* the keeper's process, which ends with the node */
		return;
	mutex_lock(&ring3_blocks);
	hlist_for_each_entry(block, &ring3_blocks_of[proc - ring3_region.procs], of_proc)
		if (&block->tb != but)
			kill_thread(&block->tb, why);
	mutex_unlock(&ring3_blocks);
}

long ring3_sys_exit_group(int code)
{
	struct ring3_thread *me = current->thread.tb;
	struct ring3_proc *proc = (struct ring3_proc *)me->proc;

	turn_futex_leaves();
	kill_threads(proc, me, 0);
	/* The process ends on the host after it has ended here completely, so the keeper has nothing to do. */
	if (IS_ENABLED(CONFIG_RING3_SIM) && ring3_proc_listed(proc))
		wait_event(process_over, READ_ONCE(proc->threads) == 1 || ring3_proc_dead(proc));
	turn_leaves(me);
	settle_exit(me);
	if (IS_ENABLED(CONFIG_RING3_SIM)) {
		/* Its parent asks the node for the exit status. */
		spin_lock_irq(&current->sighand->siglock);
		current->signal->flags = SIGNAL_GROUP_EXIT;
		current->signal->group_exit_code = code & RING3_BY_SIGNAL ? code & 0x7f : (code & 0xff) << 8;
		spin_unlock_irq(&current->sighand->siglock);
	}
	do_exit(code & RING3_BY_SIGNAL ? code & 0x7f : (code & 0xff) << 8);
}

long ring3_sys_exec(void)
{
	struct ring3_thread *me = current->thread.tb;
	struct ring3_fdmap *map = (struct ring3_fdmap *)me->fdmap, *own;
	unsigned int word;
	int ret;

	turn_futex_leaves();
	kill_threads((struct ring3_proc *)me->proc, me, R3_F_EXECED);
	ret = unshare_files();
	if (ret)
		return ret;
	if (ring3_fdmap_is_shared(me)) {
		own = ring3_fdmap_new(NULL);
		if (!own)
			return -ENOMEM;
		ring3_fdmap_becomes(me, own);
		map = own;
	}
	do_close_on_exec(current->files);
	for (word = 0; word < RING3_FDS_MAX / 64; word++) {
		u64 left = map->node[word];

		for (; left; left &= left - 1) {
			unsigned int fd = word * 64 + __ffs64(left);
			struct file *file = fget_raw(fd);

			if (file)
				fput(file);
			else
				map->node[word] &= ~(1ULL << (fd % 64));
		}
	}
	memset(map->proxy, 0, sizeof(map->proxy));
	ring3_maps_exit(me->proc);
	turn_memory_forget((struct ring3_proc *)me->proc);
	return ring3_exec_creds();
}

/*
 * The host stores a child's pid before the child runs (CLONE_PARENT_SETTID). If its parent is dead and the pid is
 * 0, the child never came to be: its parent was killed during the host's clone. The descriptors of its task would
 * stay open for ever.
 */
static void kill_unborn(struct ring3_proc *parent)
{
	u32 i, creator = parent - ring3_region.procs + 1;
	struct ring3_proc *proc = ring3_region.procs;
	struct block *block;

	mutex_lock(&ring3_blocks);
	for (i = 0; i < ring3_region.procs_used; i++, proc++) {
		if (proc->creator != creator || READ_ONCE(proc->pid) || !proc->threads)
			continue;
		hlist_for_each_entry(block, &ring3_blocks_of[i], of_proc)
			kill_thread(&block->tb, 0);
	}
	mutex_unlock(&ring3_blocks);
}

/* A process has ended on the host. The keeper has marked it DEAD already: bury() in ring3/node/src/procs.rs. */
long ring3_sys_reap(struct ring3_proc *proc)
{
	struct block *block;

	if (!ring3_proc_listed(proc))
		return -EINVAL;
	kill_threads(proc, NULL, 0);
	kill_unborn(proc);
	if (!wait_event_timeout(process_over, !READ_ONCE(proc->threads), REAP_PATIENCE))
		return -EBUSY;
	/* Another vCPU may be about to reuse one of these blocks: ring3_thread_alloc(). */
	mutex_lock(&ring3_blocks);
	hlist_for_each_entry(block, &ring3_blocks_of[proc - ring3_region.procs], of_proc) {
		block->tb.tid = 0;
		r3t_host_pid(&block->tb) = R3T_NO_PID;
	}
	mutex_unlock(&ring3_blocks);
	host_store(&proc->state, RING3_PROC_FREE);	/* no procs_changed(): the keeper itself has asked */
	return 0;
}
