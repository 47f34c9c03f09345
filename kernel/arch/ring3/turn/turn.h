/* SPDX-License-Identifier: GPL-2.0 */
/*
 * turn/ - the vCPU is the turn (the sim flavour)
 *
 * Theory of operation
 * -------------------
 * Time is virtual, and one thread of the whole node runs at a time. A thread keeps the vCPU while it is in user
 * code: vcpu.owner is its tid until it makes a call that waits. Linux's scheduler then runs other tasks on that
 * thread. A task whose call is over hands the vCPU to its own thread, which goes home with it. When no task
 * can run, the thread that drives moves the clock to the next timer. So the order of all that happens follows from the
 * scheduler and the timers, and from nothing of the host's.
 *
 * A thread inside the image is in one of these states:
 *
 *	drives	owner == tid; on a task's stack
 *	waits	its call is in other hands; sleeps on tb->word until BATON, or DONE (the keeper)
 *
 * Outside, it has the turn and computes, or is on its way to get it for the first time. A new thread gets it from
 * its creator's kernel code (ring3_sys_begin()): its task hands the vCPU over as if a call of it had ended.
 *
 * The vCPU is free (owner == 0) where time stands still: there is no program, or none will be woken by a timer.
 * Who comes from outside, the keeper or a program that joins, takes a free vCPU. Else it says in `pending' that it has
 * come, and the holder lets its task run like any other.
 *
 * Processes and threads end in the host after they have ended here. Who gets the turn next waits for that (turn_leaving).
 */
#ifndef RING3_TURN_H
#define RING3_TURN_H

#include <linux/linkage.h>
#include <linux/types.h>

struct __kernel_old_timeval;
struct __kernel_timespec;
struct __kernel_timex;
struct timezone;
struct ring3_proc;
struct ring3_thread;

/* Gate and keeper call ring3_fixup() with this bit in the address, and with the registers, after SIGTRAP: debug.c. */
#define TURN_TRAP	(1UL << 63)

/* The gate calls it with this alone, and gets the time of day of its thread's host in ns: skew.c. */
#define TURN_DAY	(1UL << 62)

#ifdef CONFIG_RING3_SIM

/* debug.c */
unsigned long turn_trap(u64 rip, u64 *regs);
long turn_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4);

/* pending: a thread from outside wants its call to be made, or its signal to be seen. The place of RING3_IRQ_SLEEPER. */
#define RING3_IRQ_COMER		(1u << 4)

/* clock/virtual.c. W: who holds the vCPU. */
extern u64 ring3_virtual_now, ring3_virtual_cost, ring3_virtual_read_cost;
void ring3_clock_jump(u64 to);

/* deadlock.c */
#define TURN_NAME_BYTES	20	/* of a host or program, in messages */
extern bool turn_looked;
void turn_tell_deadlock(u64 since);
void turn_name_deadlock(void);
void turn_host_of(int pid, char *name, size_t size);
void turn_comm_of(int pid, char *name, size_t size);
void turn_name_call(u64 nr, char *name, size_t size);

/* futex.c, futex_pi.c, hostwait.c */
void turn_memory_forget(struct ring3_proc *proc);
void turn_futex_leaves(void);
long ring3_sys_futex_memory(unsigned long start, unsigned long end, u64 object, u64 index);
long ring3_sys_host_wait(u64 ns);
long ring3_sys_host_changed(void);

/* task.c: on a task's stack */
void turn_admit(void);
void turn_idle(void);
bool turn_go_home(struct ring3_thread *tb);	/* false: its process has been ended meanwhile, the thread stays */
void turn_ended(struct ring3_thread *tb);
void turn_leaves(struct ring3_thread *tb);
void turn_thread_leaves(struct ring3_thread *tb, u32 __user *clear, u32 *left);
void turn_stop(void);
void turn_stopped(struct ring3_thread *tb);
bool turn_is_kept(const struct ring3_thread *tb);	/* the thread goes home with the vCPU */
bool turn_carries(const struct ring3_thread *tb);	/* the thread may go home only where time stands still, or hands the vCPU over */
int turn_number(void);		/* of the host's, for a new thread */
long ring3_sys_begin(struct ring3_thread *child, int tid);

/* jitter.c */
void turn_jitter(void);

/* trace.c */
extern bool turn_traces;
void turn_observed(char *cmdline);
void turn_trace(u32 nr, s32 pid, s64 ret);
void turn_trace_write(void);

/* order.c */
u64 turn_cost(unsigned long nr, int pid);

/* patience.c: what KEEP sends to a thread that is to be preempted. gate/sim/sim.c has the same. Its lower bits are ns of virtual time. */
#define TURN_MARK_PREEMPT	0x7233ull
#define TURN_MARK_SHIFT		48
u64 turn_look_ns(void);
void turn_look(const struct ring3_thread *holder, u32 owner);

/* preempt.c */
bool turn_is_preempt(u64 value);
long turn_preempt(u64 value);

/* skew.c */
u64 turn_day(void);
asmlinkage long sys_turn_clock_gettime(clockid_t clock, struct __kernel_timespec __user *time);
asmlinkage long sys_turn_gettimeofday(struct __kernel_old_timeval __user *time, struct timezone __user *zone);
asmlinkage long sys_turn_time(__kernel_old_time_t __user *time);
asmlinkage long sys_turn_clock_nanosleep(clockid_t clock, int flags, const struct __kernel_timespec __user *until,
					 struct __kernel_timespec __user *rest);
asmlinkage long sys_turn_clock_settime(clockid_t clock, const struct __kernel_timespec __user *time);
asmlinkage long sys_turn_settimeofday(struct __kernel_old_timeval __user *time, struct timezone __user *zone);
asmlinkage long sys_turn_adjtimex(struct __kernel_timex __user *user);
asmlinkage long sys_turn_clock_adjtime(clockid_t clock, struct __kernel_timex __user *user);

/* shared by host stacks and tasks */
extern u32 turn_hands;		/* how often the vCPU was handed over */
extern u32 turn_comers;		/* the keeper has come: admitted where all wait */
extern s32 turn_leaving;	/* a process that has ended here, and maybe not in the host */
extern struct ring3_thread *turn_leaving_thread;	/* the same of a thread, which clears this word as it leaves memory alone */
extern u32 *turn_leaving_word;

#else

static inline unsigned long turn_trap(u64 rip, u64 *regs) { return 0; }
static inline u64 turn_day(void) { return 0; }
static inline void turn_admit(void) { }
static inline void turn_idle(void) { }
static inline bool turn_go_home(struct ring3_thread *tb) { return true; }
static inline void turn_ended(struct ring3_thread *tb) { }
static inline bool turn_is_kept(const struct ring3_thread *tb) { return false; }
static inline bool turn_carries(const struct ring3_thread *tb) { return false; }
static inline void turn_observed(char *cmdline) { }
static inline void turn_leaves(struct ring3_thread *tb) { }
static inline void turn_thread_leaves(struct ring3_thread *tb, u32 __user *clear, u32 *left) { }
static inline int turn_number(void) { return 0; }
static inline void turn_stop(void) { }
static inline void turn_stopped(struct ring3_thread *tb) { }
static inline long ring3_sys_begin(struct ring3_thread *child, int tid) { return -38; }
static inline void turn_memory_forget(struct ring3_proc *proc) { }
static inline void turn_futex_leaves(void) { }
static inline long ring3_sys_futex_memory(unsigned long start, unsigned long end, u64 object, u64 index) { return -38; }
static inline long ring3_sys_host_wait(u64 ns) { return -38; }
static inline long ring3_sys_host_changed(void) { return -38; }

#endif
#endif
