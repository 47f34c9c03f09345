// SPDX-License-Identifier: GPL-2.0
/*
 * futex.c - futexes in virtual time
 *
 * Theory of operation
 * -------------------
 * A wait has to be the node's, since only the node can pass virtual time meanwhile. Linux's own futexes (CONFIG_FUTEX) are no
 * choice yet: their words in struct task_struct would make each of the 1,280 objects of this flavour another than that of
 * `up', with which it shares nearly all; and without an MMU their key is the address alone, in whichever program. So this
 * has the calls of futex(2) on lists. It is short, because one thread of the node runs at a time and nothing preempts
 * kernel code: between a look at a word and the place in the list nothing happens. futex_pi.c has owners and robust lists.
 *
 * A futex is known by its key. A word in memory that several processes may have mapped shared is known by object and
 * offset, which the gate finds in the host's list of mappings and says before the call (FUTEX_MEMORY). All others are known
 * by process and address.
 *
 * Waiters are woken in the order in which they came.
 */
#include <linux/errno.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/restart_block.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/syscalls.h>
#include <linux/time64.h>
#include <linux/time_namespace.h>
#include <linux/uaccess.h>
#include <asm/ring3.h>
#include "futex.h"
#include "turn.h"

#define BUCKET_BITS	10
#define SHARED_HERE	1UL	/* beside a process: Linux tells its shared futexes from its private ones */

struct memory {
	struct list_head list;
	struct ring3_proc *proc;
	unsigned long start, end;
	u64 object, index;		/* of the page at start */
};

static LIST_HEAD(memories);
static struct list_head buckets[1 << BUCKET_BITS];

static int __init init_buckets(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(buckets); i++)
		INIT_LIST_HEAD(&buckets[i]);
	return 0;
}
pure_initcall(init_buckets);

void turn_memory_forget(struct ring3_proc *proc)
{
	struct memory *m, *next;

	list_for_each_entry_safe(m, next, &memories, list) {
		if (m->proc != proc)
			continue;
		list_del(&m->list);
		kfree(m);
	}
}

long ring3_sys_futex_memory(unsigned long start, unsigned long end, u64 object, u64 index)
{
	struct memory *m;

	if (!end) {
		turn_memory_forget(current->thread.proc);
		return 0;
	}
	m = kmalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	*m = (struct memory){ .proc = current->thread.proc, .start = start, .end = end, .object = object, .index = index };
	list_add(&m->list, &memories);
	return 0;
}

long turn_key_of(u32 __user *word, bool private, struct turn_key *key)
{
	struct ring3_proc *proc = current->thread.proc;
	unsigned long at = (unsigned long)word;
	struct memory *m;

	if (at % sizeof(u32))
		return -EINVAL;
	if (!access_ok(word, sizeof(u32)))
		return -EFAULT;
	*key = (struct turn_key){ (u64)proc, at };
	if (private)
		return 0;
	key->object |= SHARED_HERE;
	list_for_each_entry(m, &memories, list) {
		if (m->proc == proc && at >= m->start && at < m->end) {
			*key = (struct turn_key){ m->object, (m->index << PAGE_SHIFT) + at - m->start };
			break;
		}
	}
	return 0;
}

struct list_head *turn_bucket(const struct turn_key *key)
{
	return &buckets[hash_64(key->object ^ hash_64(key->at, 64), BUCKET_BITS)];
}

static bool is_at(const struct turn_waiter *w, const struct turn_key *key)
{
	return w->key.object == key->object && w->key.at == key->at;
}

struct turn_waiter *turn_first(const struct turn_key *key)
{
	struct turn_waiter *w;

	list_for_each_entry(w, turn_bucket(key), list)
		if (is_at(w, key))
			return w;
	return NULL;
}

void turn_wake(struct turn_waiter *w)
{
	list_del_init(&w->list);
	wake_up_process(w->task);
}

long turn_wake_some(const struct turn_key *key, int count, u32 bitset)
{
	struct turn_waiter *w, *next;
	long woken = 0;

	list_for_each_entry_safe(w, next, turn_bucket(key), list) {
		if (!is_at(w, key))
			continue;
		if (w->pi)
			return -EINVAL;
		if (!(w->bitset & bitset))
			continue;
		turn_wake(w);
		if (++woken >= count)
			break;
	}
	return woken;
}

/* The index of one that was woken, or -1. */
static int woken_of(const struct turn_waiter *w, u32 count)
{
	u32 i;

	for (i = 0; i < count; i++)
		if (list_empty(&w[i].list))
			return i;
	return -1;
}

long turn_wait(struct turn_waiter *w, u32 count, ktime_t until, clockid_t clock)
{
	long ret = 0;
	u32 i;
	int index;

	for (;;) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (woken_of(w, count) >= 0 || ret)
			break;
		if (signal_pending(current))
			ret = -EINTR;
		else if (!schedule_hrtimeout_range_clock(until == KTIME_MAX ? NULL : &until, 0, HRTIMER_MODE_ABS, clock))
			ret = -ETIMEDOUT;
	}
	__set_current_state(TASK_RUNNING);
	index = woken_of(w, count);
	for (i = 0; i < count; i++)
		list_del_init(&w[i].list);
	return index >= 0 ? index : ret;
}

#define PRIVATE		1U	/* restart_block.futex.flags */
#define REALTIME	2U

static long restart_wait(struct restart_block *restart);

/* until: absolute. A wait with a time is not made again after a signal that has a handler. */
static long wait_for(u32 __user *word, bool private, u32 val, ktime_t until, clockid_t clock, u32 bitset)
{
	struct turn_waiter w = { .task = current, .bitset = bitset };
	struct restart_block *restart;
	long ret;
	u32 now;

	if (!bitset)
		return -EINVAL;
	ret = turn_key_of(word, private, &w.key);
	if (ret)
		return ret;
	if (get_user(now, word))
		return -EFAULT;
	if (now != val)
		return -EAGAIN;
	list_add_tail(&w.list, turn_bucket(&w.key));
	ret = turn_wait(&w, 1, until, clock);
	if (ret != -EINTR)
		return ret;
	if (until == KTIME_MAX)
		return -ERESTARTSYS;
	restart = &current->restart_block;
	restart->futex.uaddr = word;
	restart->futex.val = val;
	restart->futex.time = until;
	restart->futex.bitset = bitset;
	restart->futex.flags = (private ? PRIVATE : 0) | (clock == CLOCK_REALTIME ? REALTIME : 0);
	return set_restart_fn(restart, restart_wait);
}

static long restart_wait(struct restart_block *restart)
{
	return wait_for(restart->futex.uaddr, restart->futex.flags & PRIVATE, restart->futex.val, restart->futex.time,
			restart->futex.flags & REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC, restart->futex.bitset);
}

static long wake(u32 __user *word, bool private, int count, u32 bitset)
{
	struct turn_key key;
	long ret = turn_key_of(word, private, &key);

	if (!bitset)
		return -EINVAL;
	return ret ? : turn_wake_some(&key, count, bitset);
}

static long requeue(u32 __user *word, bool private, u32 __user *word2, bool private2, int wakes, int moves, const u32 *cmp)
{
	struct turn_key key, key2;
	struct turn_waiter *w, *next;
	LIST_HEAD(moved);
	long ret, done = 0;
	u32 now;

	if (wakes < 0 || moves < 0)
		return -EINVAL;
	ret = turn_key_of(word, private, &key);
	ret = ret ? : turn_key_of(word2, private2, &key2);
	if (ret)
		return ret;
	if (cmp) {
		if (get_user(now, word))
			return -EFAULT;
		if (now != *cmp)
			return -EAGAIN;
	}
	list_for_each_entry_safe(w, next, turn_bucket(&key), list) {
		if (!is_at(w, &key))
			continue;
		if (w->pi) {
			done = done ? : -EINVAL;
			break;
		}
		if (done - wakes >= moves)
			break;
		if (done++ < wakes) {
			turn_wake(w);
			continue;
		}
		list_move_tail(&w->list, &moved);
		w->key = key2;
	}
	list_splice_tail(&moved, turn_bucket(&key2));
	return done;
}

/* FUTEX_WAKE_OP's second word: does what `code' says, and tells whether what was there is as `code' asks. */
static long change(u32 code, u32 __user *word, bool *holds)
{
	u32 op = code >> 28 & 7, cmp = code >> 24 & 15, old, to;
	int arg = sign_extend32(code >> 12, 11), against = sign_extend32(code, 11);

	if (code & (u32)FUTEX_OP_OPARG_SHIFT << 28)
		arg = 1 << (arg & 31);
	if (get_user(old, word))
		return -EFAULT;
	switch (op) {
	case FUTEX_OP_SET:
		to = arg;
		break;
	case FUTEX_OP_ADD:
		to = old + arg;
		break;
	case FUTEX_OP_OR:
		to = old | arg;
		break;
	case FUTEX_OP_ANDN:
		to = old & ~arg;
		break;
	case FUTEX_OP_XOR:
		to = old ^ arg;
		break;
	default:
		return -ENOSYS;
	}
	if (put_user(to, word))
		return -EFAULT;
	switch (cmp) {
	case FUTEX_OP_CMP_EQ:
		*holds = (int)old == against;
		return 0;
	case FUTEX_OP_CMP_NE:
		*holds = (int)old != against;
		return 0;
	case FUTEX_OP_CMP_LT:
		*holds = (int)old < against;
		return 0;
	case FUTEX_OP_CMP_GE:
		*holds = (int)old >= against;
		return 0;
	case FUTEX_OP_CMP_LE:
		*holds = (int)old <= against;
		return 0;
	case FUTEX_OP_CMP_GT:
		*holds = (int)old > against;
		return 0;
	}
	return -ENOSYS;
}

static long wake_op(u32 __user *word, u32 __user *word2, bool private, int wakes, int wakes2, u32 code)
{
	struct turn_key key, key2;
	bool holds = false;
	long ret, more;

	ret = turn_key_of(word, private, &key);
	ret = ret ? : turn_key_of(word2, private, &key2);
	ret = ret ? : change(code, word2, &holds);
	ret = ret ? : turn_wake_some(&key, wakes, FUTEX_BITSET_MATCH_ANY);
	if (ret < 0 || !holds)
		return ret;
	more = turn_wake_some(&key2, wakes2, FUTEX_BITSET_MATCH_ANY);
	return more < 0 ? more : ret + more;
}

/* The time of a wait: of that clock, absolute. */
static long time_of(const struct __kernel_timespec __user *user, bool relative, clockid_t clock, ktime_t *until)
{
	struct timespec64 ts;

	*until = KTIME_MAX;
	if (!user)
		return 0;
	if (get_timespec64(&ts, user))
		return -EFAULT;
	if (!timespec64_valid(&ts))
		return -EINVAL;
	*until = timespec64_to_ktime(ts);
	if (relative)
		*until = ktime_add_safe(clock == CLOCK_REALTIME ? ktime_get_real() : ktime_get(), *until);
	else
		*until = timens_ktime_to_host(clock, *until);
	return 0;
}

SYSCALL_DEFINE6(futex, u32 __user *, word, int, op, u32, val, const struct __kernel_timespec __user *, time,
		u32 __user *, word2, u32, val3)
{
	bool private = op & FUTEX_PRIVATE_FLAG;
	clockid_t clock = op & FUTEX_CLOCK_REALTIME ? CLOCK_REALTIME : CLOCK_MONOTONIC;
	u32 val2 = (unsigned long)time;		/* where the call takes no time */
	ktime_t until;
	long ret;

	op &= FUTEX_CMD_MASK;
	if (clock == CLOCK_REALTIME && op != FUTEX_WAIT_BITSET && op != FUTEX_LOCK_PI2)
		return -ENOSYS;
	if (op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2) {
		if (op == FUTEX_LOCK_PI)
			clock = CLOCK_REALTIME;
		ret = time_of(time, op == FUTEX_WAIT, clock, &until);
		if (ret)
			return ret;
	}
	switch (op) {
	case FUTEX_WAIT:
		return wait_for(word, private, val, until, clock, FUTEX_BITSET_MATCH_ANY);
	case FUTEX_WAIT_BITSET:
		return wait_for(word, private, val, until, clock, val3);
	case FUTEX_WAKE:
		return wake(word, private, val, FUTEX_BITSET_MATCH_ANY);
	case FUTEX_WAKE_BITSET:
		return wake(word, private, val, val3);
	case FUTEX_REQUEUE:
		return requeue(word, private, word2, private, val, val2, NULL);
	case FUTEX_CMP_REQUEUE:
		return requeue(word, private, word2, private, val, val2, &val3);
	case FUTEX_WAKE_OP:
		return wake_op(word, word2, private, val, val2, val3);
	case FUTEX_LOCK_PI:
	case FUTEX_LOCK_PI2:
		return turn_lock_pi(word, private, until, clock, false);
	case FUTEX_TRYLOCK_PI:
		return turn_lock_pi(word, private, KTIME_MAX, clock, true);
	case FUTEX_UNLOCK_PI:
		return turn_unlock_pi(word, private);
	}
	return -ENOSYS;			/* condition variables of before glibc 2.25: FUTEX_WAIT_REQUEUE_PI */
}

static bool flags_valid(u32 flags)
{
	return (flags & ~FUTEX2_PRIVATE) == FUTEX2_SIZE_U32;
}

SYSCALL_DEFINE5(futex_waitv, struct futex_waitv __user *, user, unsigned int, count, unsigned int, flags,
		struct __kernel_timespec __user *, time, clockid_t, clock)
{
	struct turn_waiter *w;
	struct futex_waitv v;
	ktime_t until;
	long ret;
	u32 i, now;

	if (flags || !count || count > FUTEX_WAITV_MAX || !user ||
	    (time && clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return -EINVAL;
	ret = time_of(time, false, clock, &until);
	if (ret)
		return ret;
	w = kcalloc(count, sizeof(*w), GFP_KERNEL);
	if (!w)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		INIT_LIST_HEAD(&w[i].list);
	for (i = 0; i < count && !ret; i++) {
		if (copy_from_user(&v, user + i, sizeof(v)))
			ret = -EFAULT;
		else if (!flags_valid(v.flags) || v.__reserved || v.val > U32_MAX)
			ret = -EINVAL;
		else
			ret = turn_key_of((u32 __user *)v.uaddr, v.flags & FUTEX2_PRIVATE, &w[i].key);
		if (!ret && get_user(now, (u32 __user *)v.uaddr))
			ret = -EFAULT;
		if (!ret && now != v.val)
			ret = -EAGAIN;
		w[i].task = current;
		w[i].bitset = FUTEX_BITSET_MATCH_ANY;
	}
	if (!ret) {
		for (i = 0; i < count; i++)
			list_add_tail(&w[i].list, turn_bucket(&w[i].key));
		ret = turn_wait(w, count, until, clock);
		if (ret == -EINTR)
			ret = -ERESTARTSYS;
	}
	kfree(w);
	return ret;
}

SYSCALL_DEFINE4(futex_wake, void __user *, word, unsigned long, mask, int, count, unsigned int, flags)
{
	if (!flags_valid(flags) || mask > U32_MAX)
		return -EINVAL;
	return wake(word, flags & FUTEX2_PRIVATE, count, mask);
}

SYSCALL_DEFINE6(futex_wait, void __user *, word, unsigned long, val, unsigned long, mask, unsigned int, flags,
		struct __kernel_timespec __user *, time, clockid_t, clock)
{
	ktime_t until;
	long ret;

	if (!flags_valid(flags) || mask > U32_MAX || val > U32_MAX ||
	    (time && clock != CLOCK_MONOTONIC && clock != CLOCK_REALTIME))
		return -EINVAL;
	ret = time_of(time, false, clock, &until);
	return ret ? : wait_for(word, flags & FUTEX2_PRIVATE, val, until, clock, mask);
}

SYSCALL_DEFINE4(futex_requeue, struct futex_waitv __user *, user, unsigned int, flags, int, wakes, int, moves)
{
	struct futex_waitv v[2];
	u32 cmp;

	if (flags || !user)
		return -EINVAL;
	if (copy_from_user(v, user, sizeof(v)))
		return -EFAULT;
	if (!flags_valid(v[0].flags) || v[0].flags != v[1].flags || v[0].__reserved || v[1].__reserved || v[0].val > U32_MAX)
		return -EINVAL;
	cmp = v[0].val;
	return requeue((u32 __user *)v[0].uaddr, v[0].flags & FUTEX2_PRIVATE, (u32 __user *)v[1].uaddr,
		       v[1].flags & FUTEX2_PRIVATE, wakes, moves, &cmp);
}
