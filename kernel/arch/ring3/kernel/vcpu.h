/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words that host threads share without holding the vCPU. A UP kernel's own
 * atomics have no lock prefix, so these are compiler builtins, which do.
 */
#ifndef RING3_VCPU_H
#define RING3_VCPU_H

#include <asm/ring3.h>

#define host_load(p)		__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define host_store(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define host_or(p, v)		__atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define host_andnot(p, v)	__atomic_fetch_and((p), ~(v), __ATOMIC_SEQ_CST)
#define host_add(p, v)		__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define host_xchg(p, v)		__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)
#define host_fence()		__atomic_thread_fence(__ATOMIC_SEQ_CST)

static inline bool host_cas(u32 *p, u32 old, u32 new)
{
	return __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Internal bit of thread->word: its owner is in futex_wait. */
#define RING3_WORD_SLEEPING	(1u << 31)
#define RING3_WORD_COME		(1u << 30)	/* its task waits for it, see ring3_user_reach() */

/* vcpu.polled is what the way out of a call has to do; bits. */
#define R3_EXIT_POLL		1u	/* links are unarmed: look at them */
#define R3_EXIT_KICK		2u	/* KEEP sleeps beyond the next deadline */

static inline unsigned long *r3t_priv(struct ring3_thread *tb, int i)
{
	return (unsigned long *)&tb->image_private[i];
}
#define r3t_call(tb)	(*r3t_priv(tb, R3T_CALL))
#define r3t_request(tb)	(*r3t_priv(tb, R3T_REQUEST))
#define r3t_flags(tb)	(*r3t_priv(tb, R3T_FLAGS))
#define r3t_outside(tb)	(*r3t_priv(tb, R3T_OUTSIDE))

extern struct ring3_thread *ring3_threads;	/* all blocks ever made; only grows */
extern u64 ring3_keep_until;
extern u32 ring3_drive_wanted;
extern bool ring3_keep_watches;

void ring3_thread_notify(struct ring3_thread *tb, u32 bits);
bool ring3_thread_call(struct ring3_thread *tb);
bool ring3_clock_sync_now(void);
void ring3_take_number(struct ring3_thread *tb);

/*
 * KEEP raises the timer interrupt for everybody, but it can't while it drives itself,
 * and it may do that for as long as there is work: it has to look from in there.
 */
static inline void ring3_deadline_check(void)
{
	if (ring3_driver == &ring3_region.driver_thread[0] &&
	    ring3_clock() >= READ_ONCE(ring3_vcpu->deadline))
		host_or(&ring3_region.pending, RING3_IRQ_TIMER);
}

bool ring3_poll_unarmed(void);
bool ring3_poll_beside_peer(void);
void ring3_settle(bool idle);
int ring3_enter_drive(struct ring3_thread *tb);
bool ring3_exit_slow(struct ring3_thread *tb, long ret);
int ring3_host_leave(struct ring3_thread *tb);
int ring3_host_enter(struct ring3_thread *tb, int owned);
int ring3_host_park(struct ring3_thread *tb, unsigned long mode, struct ring3_thread *to);

#endif
