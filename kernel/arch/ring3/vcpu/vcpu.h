/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Words that host threads share without holding the vCPU. A UP kernel's own
 * atomics have no lock prefix, so these are compiler builtins, which do.
 */
#ifndef RING3_VCPU_H
#define RING3_VCPU_H

#include <linux/cache.h>
#include <linux/threads.h>
#include <uapi/linux/futex.h>
#include <asm/ring3.h>
#include <asm/switch_to.h>
#include <ring3/ring3_lock.h>
#include "tuning.h"

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
#define r3t_slack(tb)	(*r3t_priv(tb, R3T_SLACK))
#define r3t_owes(tb)	(*r3t_priv(tb, R3T_OWES))
#define r3t_robust(tb)	(*r3t_priv(tb, R3T_ROBUST))
#define r3t_burst(tb)	(((u32 *)r3t_priv(tb, R3T_BURST))[0])
#define r3t_cpu(tb)	(((u32 *)r3t_priv(tb, R3T_BURST))[1])
#define r3t_copy(tb)	(*(struct ring3_outside **)r3t_priv(tb, R3T_COPY))
#define r3t_since(tb)	(*r3t_priv(tb, R3T_SINCE))
#define r3t_outside(tb)	(*r3t_priv(tb, R3T_OUTSIDE))
#define r3t_host_pid(tb)	(*r3t_priv(tb, R3T_HOST_PID))	/* 0: no call yet */
#define R3T_NO_PID	(-1UL)	/* no process's; it has made a call */

/* A copy that a task leaves to its thread: vcpu/outside.c */
struct ring3_outside {
	void *to;
	const void *from;
	unsigned long n, left;	/* bytes; the thread writes `left' */
};
unsigned long ring3_copy_now(void *to, const void *from, unsigned long n);
unsigned long ring3_copy_long(void *to, const void *from, unsigned long n);

/* What POP_SAVED and ret in entry.S take off a parked task's stack. */
struct parked_frame {
	unsigned long r15, r14, r13, r12, bx, bp, ip;
};

/* A thread that is to be woken, and what its word was. */
struct ring3_wake {
	struct ring3_thread *tb;
	u32 word;
};
#define WAKES_MAX	8
#define WOKEN		8

/* Others want a CPU of the host's: threads of the node neither poll nor yield there. */
struct ring3_crowd {
	u64 until;
	u64 ns;			/* for so long, the last time */
	struct ring3_thread *last, *before;	/* the last two threads that were seen here, awake. Hints */
};
#define CROWDS		16	/* CPUs of the same number modulo this share one */

/* A thread's, as the host keeps them (struct pt_regs of x86). */
struct ring3_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};

/* KEEP sleeps until `until': too long for this deadline? That of one tick is not the same each time it is set. */
static inline bool ring3_keep_is_late(u64 deadline, u64 until)
{
	return deadline < until && until - deadline > KEEP_LATE_NS;
}

/* What the image keeps of a vCPU besides the contract's words. */
struct ring3_cpu {
	u32 waits;		/* a thread waits for the vCPU, awake: a note for the owner as it goes home. A hint, a plain store */
	u64 met_at;		/* when a thread that wanted the vCPU found it taken. A hint */
	u32 drive_wanted;	/* tasks are runnable and nobody drives */
	u32 yield_wanted;	/* see ring3_yield(); the up flavour's is in asm/switch_to.h */
	bool home_wanted;	/* the driver has driven for others long enough, its own call is over. W: the holder */
	bool keep_watches;	/* KEEP leaves the links unarmed, and comes back */
	u64 keep_until;
	bool keep_hot;		/* many threads go idle and come back: KEEP serves their deadlines */
	bool ticks_served;	/* KEEP comes every KEEP_TICKS_NS, and is not told of ticks */
	bool tick_new;		/* the tick was set, and nobody has looked yet what comes after it */
	bool tick;		/* vcpu->deadline is the tick, and no timer comes soon after. W: the vCPU */
	u32 watch;		/* who waits for what KEEP waits for, its tid: idle.c */
	u32 watches;		/* that began since KEEP's last turn */
	u32 watcher_lost;	/* a watcher may have died since then */
	u64 watch_until;	/* the deadline it knows */
	u64 keep_at;		/* when KEEP looked last */
	u32 away;		/* KEEP leaves doorbells and deadlines to them, for a while */
	u64 spin_ns;		/* of idle polling: adaptive; capped by region->spin_ns */
	u64 gave_up;		/* when the last spin found nothing; 0: it did */
	struct ring3_crowd crowd[CROWDS];
	u64 patience;		/* with a called thread; 0: the last one needed our CPU */
	struct ring3_thread *called;	/* the last one; it may have come since */
	struct ring3_wake wakes[WAKES_MAX];	/* that the holder has put off */
	u32 n_wakes;
	struct ring3_thread *woken[WOKEN];	/* the last ones that were, in turn; a hint */
	u32 n_woken;
	u64 next_poll;		/* of the way out of calls */
	u32 relaxed;		/* turns of pause in kernel code: ring3_relax() */
	u32 yields;		/* in this wait */
	u64 relaxed_at;
	u32 dead;		/* a holder that was found dead in kernel code: dead.c */
	u64 dead_since;
} ____cacheline_aligned;
extern struct ring3_cpu ring3_cpus[NR_CPUS];

/*
 * The vCPU that this kernel code runs on; not for code on a host thread's own stack. (asm/ring3.h
 * has a shorter name, which is that of the struct.)
 */
#undef ring3_vcpu
#undef ring3_driver
#define ring3_driver	((struct ring3_thread *)READ_ONCE(ring3_this_vcpu->driver))

/*
 * A thread and its task belong to one vCPU; code on a host stack names it by the thread. The
 * up flavour's is a constant.
 */
#ifdef CONFIG_SMP
#define ring3_this_vcpu		(ring3_stack()->vcpu)
#define ring3_this_cpu		(&ring3_cpus[ring3_stack()->cpu])
#define ring3_yield_word()	(&ring3_this_cpu->yield_wanted)

#define R3T_VCPU		5	/* of image_private[]: struct ring3_vcpu */

static inline struct ring3_vcpu *r3t_vcpu(struct ring3_thread *tb)
{
	return (struct ring3_vcpu *)tb->image_private[R3T_VCPU];
}

static inline struct ring3_cpu *vcpu_cpu(struct ring3_vcpu *vcpu)
{
	return (struct ring3_cpu *)vcpu->image;
}

static inline u32 *vcpu_pending(struct ring3_vcpu *vcpu)
{
	return &vcpu->pending;
}

static inline u32 *vcpu_yield_word(struct ring3_vcpu *vcpu)
{
	return &vcpu_cpu(vcpu)->yield_wanted;
}

static inline u32 *vcpu_kick_word(struct ring3_vcpu *vcpu)
{
	return vcpu == &ring3_region.vcpu[0] ? &ring3_region.kick : &vcpu->kick;
}

/* smp.c */
void ring3_setup_cpus(void);
void ring3_handle_ipi(u32 bits);
void ring3_place_task(struct task_struct *task, struct ring3_thread *tb);
#else
#define ring3_this_vcpu		(&ring3_region.vcpu[0])
#define ring3_this_cpu		(&ring3_cpus[0])
#define ring3_yield_word()	(&ring3_yield_wanted)

static inline struct ring3_vcpu *r3t_vcpu(struct ring3_thread *tb)
{
	return &ring3_region.vcpu[0];
}

static inline struct ring3_cpu *vcpu_cpu(struct ring3_vcpu *vcpu)
{
	return &ring3_cpus[0];
}

static inline u32 *vcpu_pending(struct ring3_vcpu *vcpu)
{
	return &ring3_region.pending;
}

static inline u32 *vcpu_yield_word(struct ring3_vcpu *vcpu)
{
	return &ring3_yield_wanted;
}

static inline u32 *vcpu_kick_word(struct ring3_vcpu *vcpu)
{
	return &ring3_region.kick;
}

static inline void ring3_setup_cpus(void)
{
}

static inline void ring3_handle_ipi(u32 bits)
{
}

static inline void ring3_place_task(struct task_struct *task, struct ring3_thread *tb)
{
}
#endif

/* KEEP would come too late for the next event. It is not told of ticks while ticks_served is set. */
static inline bool ring3_keep_misses(struct ring3_vcpu *vcpu)
{
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);

	return ring3_keep_is_late(host_load(&vcpu->deadline), READ_ONCE(cpu->keep_until)) &&
	       !(host_load(&cpu->tick) && READ_ONCE(cpu->ticks_served));
}

/* Threads have wanted the vCPU lately at the same time. */
static inline bool ring3_is_contended(void)
{
	return ring3_clock() - READ_ONCE(ring3_this_cpu->met_at) < CONTENDED_NS;
}

/* All vCPUs of the node. */
#define for_each_vcpu(v) \
	for ((v) = &ring3_region.vcpu[0]; (v); (v) = (struct ring3_vcpu *)(v)->next)

/* What others asked of the node is asked of vCPU 0. */
static inline void ring3_take_inbox(void)
{
	if (IS_ENABLED(CONFIG_SMP) && host_load(&ring3_region.pending))
		host_or(vcpu_pending(ring3_region.vcpu), host_xchg(&ring3_region.pending, 0));
}

static inline bool ring3_poisoned(void)
{
	return host_load(&ring3_region.state) >= RING3_POISONED;
}

static inline void ring3_kick(struct ring3_vcpu *vcpu)
{
	u32 *word = vcpu_kick_word(vcpu);

	host_add(word, 1);
	ring3_host_futex_wake(word, 1);
}

/* On a host thread's own stack, where cpu_relax() may not be. */
static inline void host_pause(void)
{
	asm volatile("pause" : : : "memory");
}

/* KEEP's thread block of this vCPU. */
static inline struct ring3_thread *vcpu_keeper(struct ring3_vcpu *vcpu)
{
	unsigned int n = vcpu_cpu(vcpu) - ring3_cpus;

	return &ring3_region.driver_thread[n ? 1 + n : 0];
}

extern struct ring3_thread *ring3_threads;	/* all blocks ever made; only grows */
extern struct mutex ring3_blocks;

struct ring3_waitv {		/* struct futex_waitv of <linux/futex.h> */
	u64 val, uaddr;
	u32 flags, reserved;
};

static inline struct ring3_waitv ring3_waitv(u32 *word, u32 value)
{
	/* Shared: who wakes us may be another process. */
	return (struct ring3_waitv) { value, (u64)word, FUTEX2_SIZE_U32, 0 };
}

void ring3_thread_notify(struct ring3_thread *tb, u32 bits);
bool ring3_thread_call(struct ring3_thread *tb);
void ring3_wake_now(struct ring3_vcpu *vcpu);
void ring3_take_number(struct ring3_thread *tb);
long ring3_sys_number(struct ring3_thread *child);

/*
 * KEEP raises the timer interrupt for everybody, but it can't while it drives itself,
 * and it may do that for as long as there is work: it has to look from in there.
 */
static inline void ring3_deadline_check(void)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;

	if ((struct ring3_thread *)READ_ONCE(vcpu->driver) == vcpu_keeper(vcpu) &&
	    ring3_clock() >= READ_ONCE(vcpu->deadline))
		host_or(vcpu_pending(vcpu), RING3_IRQ_TIMER);
}

void ring3_timer_start(void);	/* of this vCPU */
void ring3_tick_or_timer(void);
bool ring3_poll_unarmed(void);
u32 ring3_poll_watched(void);
/* A number that is another one when packets of peers have been taken since. */
u32 ring3_poll_taken(void);
bool ring3_poll_beside_peer(void);
long ring3_host_waitv(struct ring3_waitv *wv, unsigned int n, u64 at);
void ring3_watch_begin(struct ring3_thread *tb);
bool ring3_watch(struct ring3_thread *tb, u32 value, u64 limit_ns, long *ret);
void ring3_watch_over(struct ring3_thread *tb);
void ring3_populate_serve(struct ring3_vcpu *vcpu);
void ring3_tell_keep(struct ring3_vcpu *vcpu);
int ring3_enter_drive(struct ring3_thread *tb);
struct ring3_thread *ring3_holder(struct ring3_vcpu *vcpu, u32 tid);
void ring3_settle(struct ring3_vcpu *vcpu, bool idle);
bool ring3_take_from_dead(struct ring3_vcpu *vcpu);
bool vcpu_announce(struct ring3_vcpu *vcpu, u32 o);
struct ring3_thread *vcpu_next_owing(struct ring3_thread *tb);
unsigned long ring3_fixup(unsigned long ip, u64 *regs);
long ring3_host_adopt(struct ring3_thread *me);
long ring3_sys_adopter(void);
extern struct ring3_thread ring3_adopter_thread;
extern struct ring3_proc ring3_adopter_proc;
long ring3_host_keep(struct ring3_thread *tb);
void ring3_host_rest(void);
void ring3_ports_call(void);
bool ring3_exit_slow(struct ring3_thread *tb, long ret);
int ring3_host_leave(struct ring3_thread *tb);
int ring3_host_enter(struct ring3_thread *tb, int owned);
int ring3_host_park(struct ring3_thread *tb, unsigned long mode, struct ring3_thread *to);

#endif
