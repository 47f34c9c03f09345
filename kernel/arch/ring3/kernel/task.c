// SPDX-License-Identifier: GPL-2.0
/*
 * task.c - thread blocks, processes and the tasks behind them
 *
 * A host thread is an ordinary task here, made by user_mode_thread() so that it is
 * no kernel thread to the rest of the kernel, running ring3_task_main(). Thread
 * blocks are never freed while their host thread may still look at them: they
 * go on a list and are used again once the tid is gone.
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
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/wait.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include "cred.h"
#include "maps.h"
#include "../turn/turn.h"
#include "../vcpu/vcpu.h"

#define REAP_PATIENCE	HZ		/* a task that was killed ends within microseconds */

struct ring3_thread *ring3_threads;	/* all of them, dead ones too */

/* A thread block of the list, with what the image alone knows of it. */
struct block {
	struct ring3_thread tb;
	struct hlist_node of_proc;	/* in blocks_of[]: it is, or was last, its process's */
	struct list_head gone;		/* in blocks_gone, while it has R3_F_GONE */
};

/* Under ring3_blocks, as what follows. */
static struct hlist_head blocks_of[RING3_PROCS_MAX];
static LIST_HEAD(blocks_gone);

/*
 * Held by who makes or gives back thread blocks and processes, and by who looks for a task among
 * them: it does not end meanwhile. To walk the list without a look at tasks needs nothing.
 */
DEFINE_MUTEX(ring3_blocks);

/* REAP waits here for the last task of a dead process. */
static DECLARE_WAIT_QUEUE_HEAD(process_over);

static struct ring3_thread *next_thread_block(struct ring3_thread *tb)
{
	return (struct ring3_thread *)tb->image_private[R3T_LINK];
}

/*
 * Its task has exited; may the thread itself still be on its way out, in the gate? Only
 * the host knows. HOST_PID was noted when the task exited; REAP clears tid. A new thread
 * that has made no call yet may have to write its tid still, though its task was killed.
 */
static bool tid_gone(struct ring3_thread *tb)
{
	long pid = r3t_host_pid(tb);

	if (!pid)
		return false;
	if (!tb->tid)
		return true;
	return !ring3_host_thread_exists(pid, tb->tid);
}

static void block_gone(struct ring3_thread *tb)
{
	r3t_flags(tb) |= R3_F_GONE;
	/* The keeper's main thread has its block in the region's head. */
	if (tb != &ring3_region.init_thread)
		list_add_tail(&container_of(tb, struct block, tb)->gone, &blocks_gone);
}

static struct ring3_thread *thread_alloc(struct ring3_proc *proc, struct ring3_fdmap *map)
{
	struct ring3_thread *tb = NULL;
	struct block *block;

	mutex_lock(&ring3_blocks);
	list_for_each_entry(block, &blocks_gone, gone) {
		if (tid_gone(&block->tb)) {
			tb = &block->tb;
			break;
		}
	}
	if (tb) {
		list_del(&block->gone);
		hlist_del(&block->of_proc);
		/* But for its link: others walk the list. */
		u64 *link = &tb->image_private[R3T_LINK];

		memset(tb, 0, (void *)link - (void *)tb);
		memset(link + 1, 0, (void *)(tb + 1) - (void *)(link + 1));
	} else {
		block = kzalloc(sizeof(*block), GFP_KERNEL);
		if (!block)
			goto out;
		tb = &block->tb;
		tb->image_private[R3T_LINK] = (unsigned long)ring3_threads;
		host_store(&ring3_threads, tb);
	}
	tb->self = (unsigned long)tb;
	tb->region = (unsigned long)&ring3_region;
	tb->proc = (unsigned long)proc;
	tb->fdmap = (unsigned long)map;
	hlist_add_head(&block->of_proc, &blocks_of[proc - ring3_region.procs]);
	proc->threads++;
out:
	mutex_unlock(&ring3_blocks);
	return tb;
}

static void procs_changed(void)
{
	host_add(&ring3_region.procs_gen, 1);
	ring3_host_futex_wake(&ring3_region.procs_gen, INT_MAX);
}

/* Each entry of procs[] below this one has threads. Under ring3_blocks. */
static u32 procs_full;

static bool is_listed(struct ring3_proc *proc)
{
	return proc >= ring3_region.procs && proc < ring3_region.procs + RING3_PROCS_MAX;
}

/* Its last thread is gone, or has never been: whoever frees the entry does so after this. Under ring3_blocks. */
static void proc_emptied(struct ring3_proc *proc)
{
	if (is_listed(proc))
		procs_full = min_t(u32, procs_full, proc - ring3_region.procs);
}

static struct ring3_proc *proc_alloc(int pid)
{
	struct ring3_proc *proc, *found = NULL;
	bool full = true;
	u32 i;

	mutex_lock(&ring3_blocks);
	for (i = procs_full; i < RING3_PROCS_MAX && !found; i++) {
		proc = &ring3_region.procs[i];
		if (proc->threads)
			continue;
		if (full)
			procs_full = i;
		full = false;
		if (!proc->state)
			found = proc;
	}
	if (full)
		procs_full = i;
	if (found) {
		memset(found, 0, sizeof(*found));
		memset(found->port_fd, 0xff, sizeof(found->port_fd));
		found->pid = pid;
		host_store(&found->state, RING3_PROC_LIVE);
		if (i > ring3_region.procs_used)
			host_store(&ring3_region.procs_used, i);
	}
	mutex_unlock(&ring3_blocks);
	return found;
}

/* fdmaps are shared like file tables; the count is kept in front. */
struct fdmap_ref {
	refcount_t count;
	struct ring3_fdmap map;
};

static struct ring3_fdmap *fdmap_new(const struct ring3_fdmap *from)
{
	struct fdmap_ref *ref = kvzalloc(sizeof(*ref), GFP_KERNEL);

	if (!ref)
		return NULL;
	refcount_set(&ref->count, 1);
	if (from)
		memcpy(&ref->map, from, sizeof(*from));
	return &ref->map;
}

static struct fdmap_ref *fdmap_ref(struct ring3_fdmap *map)
{
	return container_of(map, struct fdmap_ref, map);
}

static void fdmap_put(struct ring3_fdmap *map)
{
	if (map && refcount_dec_and_test(&fdmap_ref(map)->count))
		kvfree(fdmap_ref(map));
}

/* A map that others share becomes `own`, which is a copy of it by now. */
static void fdmap_becomes(struct ring3_thread *me, struct ring3_fdmap *own)
{
	struct ring3_fdmap *map = (struct ring3_fdmap *)me->fdmap;

	memcpy(own, map, sizeof(*own));
	me->fdmap = (unsigned long)own;
	fdmap_put(map);
}

static bool fdmap_is_shared(const struct ring3_thread *me)
{
	return refcount_read(&fdmap_ref((struct ring3_fdmap *)me->fdmap)->count) > 1;
}

/* unshare(2). Whose file table is its own has a map of its own. */
long ring3_unshare(unsigned long flags)
{
	struct ring3_thread *me = current->thread.tb;
	struct ring3_fdmap *own = NULL;
	int ret;

	if ((flags & CLONE_FILES) && fdmap_is_shared(me)) {
		own = fdmap_new(NULL);
		if (!own)
			return -ENOMEM;
	}
	ret = ksys_unshare(flags);
	if (own && !ret)
		fdmap_becomes(me, own);
	else
		fdmap_put(own);
	return ret;
}

/*
 * The task gets its thread's own number where that is known and free, so that
 * F_SETOWN, SCM_CREDENTIALS and netlink see the pids that the program sees.
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

		fdmap_put((struct ring3_fdmap *)tb->fdmap);
		mutex_lock(&ring3_blocks);
		block_gone(tb);
		r3t_host_pid(tb) = R3T_NO_PID;
		tb->tid = 0;
		if (--proc->threads == 0) {
			proc_emptied(proc);
			ring3_maps_exit((u64)proc);
			host_store(&proc->state, RING3_PROC_FREE);
		}
		mutex_unlock(&ring3_blocks);
		return pid;
	}
	/* A process without a pid yet is nothing to look at; the gate says when it has one. */
	if (!(flags & CLONE_THREAD) && host_pid)
		procs_changed();
	else if (unlikely(ring3_adopter_proc.state == 1 && ring3_adopter_proc.threads == RING3_ADOPTS_TRACED))
		procs_changed();	/* a thread is to be traced */
	return (long)tb;
}

/*
 * A child's task is made before the host has numbered its process. It takes that number when its
 * parent has it from the host, or on its first call: what names a process to
 * the node's kernel (/proc/PID/ns/net, IFLA_NET_NS_PID, SCM_CREDENTIALS) is what the program
 * sees. Where another process of the node has the number (it is of another pid namespace, or
 * dead and not yet reaped), the task keeps the one it got here. ring3_blocks is held.
 */
static void take_number(struct ring3_thread *tb, struct task_struct *task)
{
	bool leader = thread_group_leader(task);
	pid_t number = leader ? ((struct ring3_proc *)tb->proc)->pid : (pid_t)tb->tid;
	const struct cred *cred;
	struct pid *pid;

	if (number <= 0 || number == task->pid)
		return;
	cred = override_creds(&init_cred);	/* a choice of its own takes a right */
	pid = alloc_pid(current->nsproxy->pid_ns_for_children, &number, 1);
	revert_creds(cred);
	if (IS_ERR(pid))
		return;
	write_lock_irq(&tasklist_lock);
	if (leader) {
		change_pid(task, PIDTYPE_TGID, pid);
		task->tgid = number;
	}
	change_pid(task, PIDTYPE_PID, pid);	/* the old one goes with its last user */
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
	for (tb = ring3_threads; tb && tb != child; tb = next_thread_block(tb))
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

	map = fdmap_new(NULL);
	if (!map)
		return -ENOMEM;
	proc = proc_alloc(host_pid);
	if (!proc) {
		fdmap_put(map);
		return -EAGAIN;
	}
	tb = thread_alloc(proc, map);
	if (!tb) {
		host_store(&proc->state, RING3_PROC_FREE);
		fdmap_put(map);
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
		refcount_inc(&fdmap_ref(map)->count);
	} else {
		map = fdmap_new(map);
		if (!map)
			return -ENOMEM;
	}
	if (!thread) {
		struct ring3_proc *child = proc_alloc(host_pid);

		if (!child) {
			fdmap_put(map);
			return -EAGAIN;
		}
		child->creator = is_listed(proc) ? proc - ring3_region.procs + 1 : 0;
		memcpy(child->port_fd, proc->port_fd, sizeof(proc->port_fd));
		ret = ring3_maps_fork((u64)proc, (u64)child, flags & CLONE_VM);
		if (ret) {
			host_store(&child->state, RING3_PROC_FREE);
			fdmap_put(map);
			return ret;
		}
		proc = child;
	}
	tb = thread_alloc(proc, map);
	if (!tb) {
		if (!thread) {
			ring3_maps_exit((u64)proc);
			host_store(&proc->state, RING3_PROC_FREE);
		}
		fdmap_put(map);
		return -ENOMEM;
	}
	tb->ret = turn_number();
	ret = start_task(tb, keep, thread ? 0 : SIGCHLD, host_pid);
	if (!IS_ERR_VALUE(ret) && (keep & CLONE_NEWUSER))
		ring3_map_user_ns((struct task_struct *)tb->task);
	return ret;
}

/* From exit_thread(), late in do_exit(): files are closed already. */
void ring3_task_exited(struct ring3_thread *tb)
{
	struct ring3_proc *proc = (struct ring3_proc *)tb->proc;
	bool last = false;

	turn_ended(tb);
	mutex_lock(&ring3_blocks);
	fdmap_put((struct ring3_fdmap *)tb->fdmap);
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
			proc_emptied(proc);
		/*
		 * One without a pid has never been on the host, which refused it: the keeper has nothing to reap. In virtual time
		 * it has nothing to reap of any that ends by itself: its call would come at the host's time.
		 */
		if (last && (!proc->pid || (IS_ENABLED(CONFIG_RING3_SIM) && is_listed(proc) && !ring3_proc_dead(proc))))
			host_store(&proc->state, RING3_PROC_FREE);
	}
	block_gone(tb);
	mutex_unlock(&ring3_blocks);
	if (last || IS_ENABLED(CONFIG_RING3_SIM))
		wake_up(&process_over);
}

void exit_thread(struct task_struct *tsk)
{
	struct ring3_thread *tb = tsk->thread.tb;

	/* A task that never ran (a failed copy_process) has nothing to give back yet. */
	if (tb && tsk == current) {
		turn_futex_leaves();
		ring3_task_exited(tb);
	}
}

/*
 * The calling thread leaves for good. Its result is settled before, since do_exit()
 * does not come back; the thread goes home at the next park.
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

static void kill_thread(struct ring3_thread *tb)
{
	struct task_struct *task = (struct task_struct *)tb->task;
	unsigned long flags;

	if (!task || (r3t_flags(tb) & R3_F_GONE))
		return;
	r3t_flags(tb) |= R3_F_KILL;
	if (lock_task_sighand(task, &flags)) {
		/* A fatal signal for this task alone: its waits end, its group's don't. */
		set_tsk_thread_flag(task, TIF_SIGPENDING);
		sigaddset(&task->pending.signal, SIGKILL);
		unlock_task_sighand(task, &flags);
	}
	wake_up_state(task, TASK_NORMAL | __TASK_STOPPED);
	/* On another vCPU it may be the current one, outside: nobody would come there. */
	kick_process(task);
}

static void kill_threads(struct ring3_proc *proc, struct ring3_thread *but)
{
	struct block *block;

	if (!is_listed(proc))		/* the keeper's, whose tasks' end is the node's */
		return;
	mutex_lock(&ring3_blocks);
	hlist_for_each_entry(block, &blocks_of[proc - ring3_region.procs], of_proc)
		if (&block->tb != but)
			kill_thread(&block->tb);
	mutex_unlock(&ring3_blocks);
}

long ring3_sys_exit_group(int code)
{
	struct ring3_thread *me = current->thread.tb;
	struct ring3_proc *proc = (struct ring3_proc *)me->proc;

	turn_futex_leaves();
	kill_threads(proc, me);
	/* The process ends in the host after all of it has ended here, so that the keeper has nothing to do with it. */
	if (IS_ENABLED(CONFIG_RING3_SIM) && is_listed(proc))
		wait_event(process_over, READ_ONCE(proc->threads) == 1 || ring3_proc_dead(proc));
	turn_leaves(me);
	settle_exit(me);
	if (IS_ENABLED(CONFIG_RING3_SIM)) {
		/* Its parent asks the node how it has ended. */
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
	kill_threads((struct ring3_proc *)me->proc, me);
	ret = unshare_files();
	if (ret)
		return ret;
	if (fdmap_is_shared(me)) {
		own = fdmap_new(NULL);
		if (!own)
			return -ENOMEM;
		fdmap_becomes(me, own);
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
 * The host stores a child's pid before it runs (CLONE_PARENT_SETTID). One whose parent is dead and that has
 * none is no process, and never will be: its parent was killed while the host made it. What its task has
 * of descriptors would stay open for ever.
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
		hlist_for_each_entry(block, &blocks_of[i], of_proc)
			kill_thread(&block->tb);
	}
	mutex_unlock(&ring3_blocks);
}

/* A host process is gone; host_enter() has marked it dead already. */
long ring3_sys_reap(struct ring3_proc *proc)
{
	struct block *block;

	if (!is_listed(proc))
		return -EINVAL;
	kill_threads(proc, NULL);
	kill_unborn(proc);
	if (!wait_event_timeout(process_over, !READ_ONCE(proc->threads), REAP_PATIENCE))
		return -EBUSY;
	/* Another vCPU may be about to use one of these blocks again: thread_alloc(). */
	mutex_lock(&ring3_blocks);
	hlist_for_each_entry(block, &blocks_of[proc - ring3_region.procs], of_proc) {
		block->tb.tid = 0;
		r3t_host_pid(&block->tb) = R3T_NO_PID;
	}
	mutex_unlock(&ring3_blocks);
	host_store(&proc->state, RING3_PROC_FREE);	/* no procs_changed(): it is the keeper that asked */
	return 0;
}
