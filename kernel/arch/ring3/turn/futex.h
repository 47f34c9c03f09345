/* SPDX-License-Identifier: GPL-2.0 */
/* futex.h - what the two halves of the futexes share: futex.c has the theory of operation */
#ifndef RING3_TURN_FUTEX_H
#define RING3_TURN_FUTEX_H

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/types.h>
#include <uapi/linux/futex.h>

/* Where a futex is: the same for all programs that see it, whatever its address there. */
struct turn_key {
	u64 object;		/* a process (with SHARED_HERE if not PRIVATE), or what is mapped */
	u64 at;			/* address, or offset in the object */
};

/* A thread that waits, for one of several futexes at the same time. */
struct turn_waiter {
	struct list_head list;	/* in a bucket, in order; empty: woken */
	struct turn_key key;
	struct task_struct *task;
	u32 bitset;
	bool pi;		/* for ownership: the word belongs to it when it is woken */
	bool died;		/* ... and the owner before has died: see hand_on() in turn/futex_pi.c */
	u32 owner;		/* ... its number */
};

long turn_key_of(u32 __user *word, bool private, struct turn_key *key);
struct list_head *turn_bucket(const struct turn_key *key);
struct turn_waiter *turn_first(const struct turn_key *key);
void turn_wake(struct turn_waiter *w);
long turn_wake_some(const struct turn_key *key, int count, u32 bitset);
/* The index of the waiter that was woken, -ETIMEDOUT or -EINTR. KTIME_MAX: for ever. They are in their buckets already. */
long turn_wait(struct turn_waiter *w, u32 count, ktime_t until, clockid_t clock);

/* futex_pi.c */
long turn_lock_pi(u32 __user *word, bool private, ktime_t until, clockid_t clock, bool try);
long turn_unlock_pi(u32 __user *word, bool private);

#endif
