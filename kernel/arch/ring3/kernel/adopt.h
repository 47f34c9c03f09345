/* SPDX-License-Identifier: GPL-2.0 */
/* What the adopter's parts share: adopt.c says what it does. All on a host thread's own stack. */
#ifndef ADOPT_H
#define ADOPT_H

#include <ring3/ring3.h>
#include "../vcpu/vcpu.h"

/* A thread that has ended, or is about to: its numbers, and its registers when it last left user mode. */
struct ring3_death {
	u32 tid, pid;
	struct ring3_regs regs;
};

/* Memory of the adopter's own, in its part of the slot. Each thread has a stack, and one for signals above it. */
#define ADOPT_STACK_BYTES	(64UL << 10)
#define ADOPT_RING_AT		(2 * ADOPT_STACK_BYTES)
#define ADOPT_SUCCESSORS_AT	(1UL << 20)

/*
 * Of adopt_trace.c. A signal of a traced thread takes 12 to 40 us more, so that 200 in 0.1 s are 2 to 8 % of its time. Shown by:
 * `bench/run traced`, `tests/run kill_busy_traced`, `tests/run debug_`.
 */
#define SIGNALS_MANY		200	/* of one thread within ... */
#define SIGNALS_NS		100000000ULL
#define SIGNALS_PAUSE_NS	10000000000ULL	/* then it is let go for so long. Choice */
#define SEIZE_US		2000	/* a thread whose process executes a program is waited for so long. Choice: others wait for 10 ms at most */
#define LOOK_AGAIN_NS		20000000ULL	/* then it is left alone for so long. Choice */
#define GIVE_LOOK_NS		1000000ULL	/* between two looks whether a process is free for a debugger. Choice */
#define PLACE_LOOK_NS		1000000000ULL	/* between two looks whether a debugger still wants it. Choice */

/* Of adopt_stop.c. Shown by: `tests/run neighbours_stop --long`. */
#define STOPPED_FIRST_NS	50000ULL	/* after a signal that stops, then twice as long each time; a thread stops within microseconds. Choice */
#define STOPPED_LOOK_NS		3000000ULL	/* between two looks at stopped threads, at most. Choice: others wait for 10 ms at most */
#define STOPPED_SCAN_NS		500000000ULL	/* between two looks whether any program is stopped. Choice */
#define STOP_SPIN_NS		20000ULL	/* the adopter waits awake for a vCPU: longer than most calls take. Choice */
#define STOP_SLEEP_NS		200000ULL	/* then asleep: a wake-up on another CPU takes 25 to 50 us */
#define STOP_NAP_NS		20000ULL	/* for a thread to send wake-ups: some 5 us each. Choice */
#define STOP_TAKE_NS		4000000ULL	/* then it interrupts the thread all the same, and sees to what has come. Choice: one slice of the host's */
#define STOP_AWAIT_NS		500000ULL	/* for an interrupted thread to stop; others wait for the vCPU meanwhile. Choice */

static inline unsigned long adopt_memory(void)
{
	return (unsigned long)&ring3_region + RING3_ADOPT_OFFSET;
}

/* What is known of the thread: it is gone; it stands at its end, traced by us. */
enum ring3_fate { FATE_GONE, FATE_ENDS };

/* adopt.c */
void ring3_adopt(const struct ring3_death *death, enum ring3_fate fate);
struct ring3_proc *ring3_adopt_holds(u32 tid);
void ring3_adopt_signal_stack(unsigned long at);

/* adopt_drive.c: the thread of the adopter's that goes on with what was under way on a vCPU */
long ring3_successors_start(void);
bool ring3_successor_is_home(struct ring3_vcpu *vcpu);
void ring3_succeed(struct ring3_vcpu *vcpu, const struct ring3_regs *regs);
void ring3_successor_goes(struct ring3_vcpu *vcpu);

/* adopt_proc.c: what the host's /proc says of threads */
void ring3_adopt_each_thread(u32 pid, void (*fn)(u32 pid, u32 tid, void *arg), void *arg);
bool ring3_adopt_goes_on(u32 pid, u32 tid);
bool ring3_adopt_is_stopped(u32 pid, u32 tid);
bool ring3_adopt_process_stopped(u32 pid);
u32 ring3_adopt_tracer(u32 pid, u32 tid);

/* adopt_trace.c */
void ring3_adopt_trace_start(bool all);
void ring3_adopt_let_go(u32 tid);
u64 ring3_adopt_trace(bool has_come);

unsigned long ring3_adopt_called(int sig, unsigned long ip);
long ring3_adopt_seize(u32 tid);
bool ring3_adopt_is_program(struct ring3_proc *proc);
long ring3_adopt_ptrace(long request, u32 tid, unsigned long data);

/* adopt_stop.c: threads that job control stops */
void ring3_adopt_stop_start(void);
void ring3_adopt_stop_signal(void);
void ring3_adopt_stop_alone(u64 until);
void ring3_adopt_stays(u32 tid);
void ring3_adopt_leaves(u32 tid, int sig);
u64 ring3_adopt_see_holders(void);

/* adopt_bpf.c: the descriptor to wait for, or an error; the next death, if there is one, or tid 0: a signal that stops. */
long ring3_adopt_bpf_start(void);
bool ring3_adopt_bpf_next(struct ring3_death *death);

#endif
