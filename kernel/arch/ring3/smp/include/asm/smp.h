/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SMP_H
#define _ASM_RING3_SMP_H

#include <asm/stack.h>

struct cpumask;

#define raw_smp_processor_id()	(ring3_stack()->cpu)

/* smp.c */
void arch_smp_send_reschedule(int cpu);
void arch_send_call_function_single_ipi(int cpu);
void arch_send_call_function_ipi_mask(const struct cpumask *mask);

#endif
