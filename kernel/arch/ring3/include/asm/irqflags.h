/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_IRQFLAGS_H
#define _ASM_RING3_IRQFLAGS_H

/*
 * Interrupts are flags in the region (DESIGN rule 3). Disabling is a store;
 * enabling looks at the vCPU's mask of pending ones. Nothing arrives asynchronously.
 */
#include <linux/compiler.h>
#include <asm/irqwords.h>

void ring3_irq_run(void);

#define ARCH_IRQ_DISABLED	0UL
#define ARCH_IRQ_ENABLED	1UL

static __always_inline unsigned long arch_local_save_flags(void)
{
	return READ_ONCE(ring3_irq_enabled);
}

static __always_inline void arch_local_irq_disable(void)
{
	WRITE_ONCE(ring3_irq_enabled, 0);
	barrier();
}

static __always_inline void arch_local_irq_enable(void)
{
	barrier();
	WRITE_ONCE(ring3_irq_enabled, 1);
	if (unlikely(READ_ONCE(ring3_pending)))
		ring3_irq_run();
}

static __always_inline unsigned long arch_local_irq_save(void)
{
	unsigned long flags = arch_local_save_flags();

	arch_local_irq_disable();
	return flags;
}

static __always_inline void arch_local_irq_restore(unsigned long flags)
{
	if (flags)
		arch_local_irq_enable();
	else
		arch_local_irq_disable();
}

static __always_inline bool arch_irqs_disabled_flags(unsigned long flags)
{
	return !flags;
}

static __always_inline bool arch_irqs_disabled(void)
{
	return arch_irqs_disabled_flags(arch_local_save_flags());
}

#endif
