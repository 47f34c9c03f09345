/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_STACK_H
#define _ASM_RING3_STACK_H

/*
 * The smp flavour finds the state of a vCPU at the foot of the current stack, by the stack pointer. So no register
 * is taken from the program, and a task that is resumed on another host thread needs no update. `task` never
 * changes; __switch_to() sets the rest when a task comes to run on a vCPU. `irq_enabled` is the same on both sides
 * of a switch, so each task may keep its own.
 *
 * Code on a host thread's own stack (vcpu/) must not ask: it has no task, and names its vCPU
 * by the thread block.
 */
#define RING3_STACK_SIZE	(8 << 12)	/* THREAD_SIZE, and stacks are aligned to it */

#ifndef __ASSEMBLY__
#include <asm/asm.h>

struct task_struct;
struct ring3_vcpu;

struct ring3_stack {
	unsigned long end_magic;	/* STACK_END_MAGIC, of the generic code */
	struct task_struct *task;
	unsigned long percpu;		/* added to the address of a per-CPU variable */
	struct ring3_vcpu *vcpu;
	unsigned int cpu;
	unsigned int irq_enabled;
};

static inline __attribute__((__always_inline__)) struct ring3_stack *ring3_stack(void)
{
	return (struct ring3_stack *)(current_stack_pointer & -(unsigned long)RING3_STACK_SIZE);
}
#endif

#endif
