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

/* Memory of the adopter's own, in its part of the slot. */
#define ADOPT_STACK_BYTES	(64UL << 10)
#define ADOPT_RING_AT		(2 * ADOPT_STACK_BYTES)
#define ADOPT_OURS_AT		(1UL << 20)

/*
 * Of adopt_trace.c. A signal of a traced thread takes 12 to 40 us more, so that 200 in 0.1 s are 2 to 8 % of its time. Shown by:
 * `bench/run traced`, `tests/run kill_busy_traced`, `tests/run debug_`.
 */
#define SIGNALS_MANY		200	/* of one thread within ... */
#define SIGNALS_NS		100000000ULL
#define SIGNALS_PAUSE_NS	10000000000ULL	/* then it is let go for so long. Choice */
#define LOOK_AGAIN_NS		20000000ULL	/* a thread whose block is made has begun by then. Choice */
#define GIVE_NAP_NS		50000ULL	/* a thread stops in such a time */
#define STOPPED_LOOK_NS		3000000ULL	/* between two looks at stopped threads. Choice: others wait for 10 ms at most */
#define STOPPED_SCAN_NS		500000000ULL	/* between two looks whether any program is stopped. Choice */
#define STOP_NAP_NS		20000ULL	/* between two stops of one that is to let go of its vCPU. Choice */

static inline unsigned long adopt_memory(void)
{
	return (unsigned long)&ring3_region + RING3_ADOPT_OFFSET;
}

/* What is known of the thread: it is gone; it stands at its end, traced by us. */
enum ring3_fate { FATE_GONE, FATE_ENDS };

void ring3_adopt(struct ring3_thread *me, struct ring3_death *death, enum ring3_fate fate);
bool ring3_adopt_holds(u32 tid, u32 *pid);

/* adopt_proc.c: what the host's /proc says of threads */
char *ring3_put_tasks(char *to, u32 pid);	/* the path of the folder of its threads */
bool ring3_adopt_goes_on(u32 pid, u32 tid);
bool ring3_adopt_is_stopped(u32 pid, u32 tid);

/* adopt_trace.c */
long ring3_adopt_trace_start(void);
void ring3_adopt_stop_signal(void);
u64 ring3_adopt_see_holders(void);
u64 ring3_adopt_trace(struct ring3_thread *me, bool look);
void ring3_adopt_let_go(struct ring3_death *death, enum ring3_fate fate);

/* adopt_bpf.c: the descriptor to wait for, or an error; the next death, if there is one, or tid 0: a signal that stops. */
long ring3_adopt_bpf_start(void);
bool ring3_adopt_bpf_next(struct ring3_death *death);

#endif
