/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PREEMPT_H
#define _ASM_RING3_PREEMPT_H

/*
 * Interrupts don't come by themselves, not even the tick, by which a loop that waits for another
 * task with cond_resched() lets it run: so cond_resched() looks after them.
 */
#define should_resched	generic_should_resched
#include <asm-generic/preempt.h>
#undef should_resched

void ring3_irq_look(void);

static __always_inline bool should_resched(int preempt_offset)
{
	ring3_irq_look();
	return generic_should_resched(preempt_offset);
}

#endif
