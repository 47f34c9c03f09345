/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_VDSO_PROCESSOR_H
#define _ASM_RING3_VDSO_PROCESSOR_H

#ifndef __ASSEMBLY__
/* Polls for interrupts, and lets the host run other threads: smp.c. */
void ring3_relax(void);

static __always_inline void cpu_relax(void)
{
	asm volatile("pause" ::: "memory");
	ring3_relax();
}
#endif

#endif
