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

/* adopt_trace.c */
void ring3_adopt_trace_look(void);
void ring3_adopt_trace(struct ring3_thread *me);
void ring3_adopt_let_go(struct ring3_death *death, enum ring3_fate fate);

/* adopt_bpf.c: the descriptor to wait for, or an error; the next death, if there is one. */
long ring3_adopt_bpf_start(void);
bool ring3_adopt_bpf_next(struct ring3_death *death);

#endif
