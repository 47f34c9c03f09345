/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_IRQWORDS_H
#define _ASM_RING3_IRQWORDS_H

/* The same words as in the up flavour: those of the vCPU whose stack this is. */
#include <asm/stack.h>
#include <ring3/ring3.h>

#define ring3_irq_enabled	(ring3_stack()->irq_enabled)
#define ring3_pending		(ring3_stack()->vcpu->pending)
#define ring3_driving		(ring3_stack()->vcpu->driver)

#endif
