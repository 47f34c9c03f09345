/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_VDSO_PROCESSOR_H
#define _ASM_RING3_VDSO_PROCESSOR_H

#ifndef __ASSEMBLY__
static __always_inline void cpu_relax(void)
{
	asm volatile("pause" ::: "memory");
}
#endif

#endif
