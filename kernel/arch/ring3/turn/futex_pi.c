// SPDX-License-Identifier: GPL-2.0
/*
 * futex_pi.c - futexes with an owner: PI locks, and robust lists
 *
 * The word of such a futex is its owner's number, or 0. In virtual time no task has priority over another, so there is
 * nothing to inherit: a PI lock is one that the kernel hands to the thread that waits for it longest.
 *
 * What the dead have owned: a thread that ends goes through its robust list, while its memory is there. PI locks that it
 * owned go to the next waiter, which marks the word itself, since it has the memory.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/syscalls.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include "../vcpu/vcpu.h"
#include "futex.h"
#include "turn.h"

static LIST_HEAD(pi_waiters);		/* by `all' of struct pi_waiter */

struct pi_waiter {
	struct turn_waiter w;
	struct list_head all;
};

static u32 own_number(void)
{
	return task_pid_vnr(current);
}

static bool is_alive(u32 number)
{
	struct task_struct *task;
	bool alive;

	rcu_read_lock();
	task = find_task_by_vpid(number);
	alive = task && !(task->flags & PF_EXITING);
	rcu_read_unlock();
	return alive;
}

/* Its owner has died: it is ours, and everybody sees from what. */
static long take_from_dead(u32 __user *word, const struct turn_key *key)
{
	u32 to = own_number() | FUTEX_OWNER_DIED | (turn_first(key) ? FUTEX_WAITERS : 0);

	return put_user(to, word) ? -EFAULT : 0;
}

long turn_lock_pi(u32 __user *word, bool private, ktime_t until, clockid_t clock, bool try)
{
	struct pi_waiter p = { .w = { .task = current, .pi = true } };
	long ret;
	u32 now;

	ret = turn_key_of(word, private, &p.w.key);
	if (ret)
		return ret;
	if (get_user(now, word))
		return -EFAULT;
	p.w.owner = now & FUTEX_TID_MASK;
	if (!p.w.owner) {
		now = (now & FUTEX_OWNER_DIED) | own_number() | (turn_first(&p.w.key) ? FUTEX_WAITERS : 0);
		return put_user(now, word) ? -EFAULT : 0;
	}
	if (p.w.owner == own_number())
		return -EDEADLK;
	if (!is_alive(p.w.owner))
		return -ESRCH;
	if (put_user(now | FUTEX_WAITERS, word))
		return -EFAULT;
	if (try)
		return -EAGAIN;
	list_add_tail(&p.w.list, turn_bucket(&p.w.key));
	list_add_tail(&p.all, &pi_waiters);
	ret = turn_wait(&p.w, 1, until, clock);
	list_del(&p.all);
	if (!ret && p.w.died)
		return take_from_dead(word, &p.w.key);
	return ret == -EINTR ? -ERESTARTNOINTR : ret;
}

long turn_unlock_pi(u32 __user *word, bool private)
{
	struct turn_waiter *w;
	struct pi_waiter *p;
	struct turn_key key;
	long ret;
	u32 now, to;

	ret = turn_key_of(word, private, &key);
	if (ret)
		return ret;
	if (get_user(now, word))
		return -EFAULT;
	if ((now & FUTEX_TID_MASK) != own_number())
		return -EPERM;
	w = turn_first(&key);
	if (w && !w->pi)
		return -EINVAL;
	to = w ? task_pid_vnr(w->task) | FUTEX_WAITERS : 0;
	if (put_user(to, word))
		return -EFAULT;
	if (!w)
		return 0;
	turn_wake(w);
	list_for_each_entry(p, &pi_waiters, all)
		if (!list_empty(&p->w.list) && p->w.key.object == key.object && p->w.key.at == key.at)
			p->w.owner = to & FUTEX_TID_MASK;
	return 0;
}

/* The first waiter of each PI lock that the calling thread owns has it from now on. */
static void hand_on(void)
{
	struct pi_waiter *p, *q;
	u32 dead = own_number();

	list_for_each_entry(p, &pi_waiters, all) {
		if (list_empty(&p->w.list) || p->w.owner != dead)
			continue;
		p->w.died = true;
		turn_wake(&p->w);
		list_for_each_entry(q, &pi_waiters, all)
			if (q->w.key.object == p->w.key.object && q->w.key.at == p->w.key.at)
				q->w.owner = task_pid_vnr(p->w.task);
	}
}

/* One lock of the list, or the one that the thread was about to take or give back (pending). */
static void leave(u32 __user *word, bool pi, bool pending)
{
	struct turn_key key;
	u32 now;

	if (turn_key_of(word, false, &key) || get_user(now, word))
		return;
	if (pending && !pi && !now) {
		turn_wake_some(&key, 1, FUTEX_BITSET_MATCH_ANY);
		return;
	}
	if ((now & FUTEX_TID_MASK) != own_number())
		return;
	if (put_user((now & FUTEX_WAITERS) | FUTEX_OWNER_DIED, word))
		return;
	if (!pi && (now & FUTEX_WAITERS))
		turn_wake_some(&key, 1, FUTEX_BITSET_MATCH_ANY);
}

static bool next_of(u64 __user *at, u64 *entry, bool *pi)
{
	u64 raw;

	if (get_user(raw, at))
		return false;
	*entry = raw & ~1ULL;
	*pi = raw & 1;
	return true;
}

/* The thread ends, or executes another program: nothing of its memory may be needed after this. */
void turn_futex_leaves(void)
{
	struct ring3_thread *tb = current->thread.tb;
	u64 __user *head = (u64 __user *)r3t_robust(tb);	/* list, offset of a word behind its entry, pending */
	u64 entry, pending, at, limit = ROBUST_LIST_LIMIT;
	bool pi, pending_pi, next_pi;
	long offset;

	hand_on();
	r3t_robust(tb) = 0;
	if (!head || !next_of(head, &entry, &pi) || get_user(offset, (long __user *)(head + 1)) ||
	    !next_of(head + 2, &pending, &pending_pi))
		return;
	while (entry != (u64)head && limit--) {
		/* The word may be what holds the entry. */
		at = entry;
		if (!next_of((u64 __user *)at, &entry, &next_pi))
			return;
		if (at != pending)
			leave((u32 __user *)(at + offset), pi, false);
		pi = next_pi;
	}
	if (pending)
		leave((u32 __user *)(pending + offset), pending_pi, true);
}

SYSCALL_DEFINE2(set_robust_list, struct robust_list_head __user *, head, size_t, len)
{
	if (len != sizeof(*head))
		return -EINVAL;
	r3t_robust(current->thread.tb) = (unsigned long)head;
	return 0;
}
