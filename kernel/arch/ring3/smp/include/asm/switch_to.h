/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SWITCH_TO_H
#define _ASM_RING3_SWITCH_TO_H

struct task_struct;

/* Swaps stacks in user space, on the driver. */
extern struct task_struct *__switch_to(struct task_struct *prev, struct task_struct *next);

#define switch_to(prev, next, last)	((last) = __switch_to((prev), (next)))

/* After a switch, with no lock held: see the up flavour's. */
bool ring3_yield_is_wanted(void);
void ring3_yield(void);
#define finish_arch_post_lock_switch()		\
do {						\
	if (unlikely(ring3_yield_is_wanted()))	\
		ring3_yield();			\
} while (0)

#endif
