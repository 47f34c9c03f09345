/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_IRQWORDS_H
#define _ASM_RING3_IRQWORDS_H

/* The words by which interrupts are enabled and pending: the one vCPU's. */
#include <ring3/ring3.h>

extern struct ring3_region ring3_region;

#define ring3_irq_enabled	(ring3_region.vcpu[0].irq_enabled)
#define ring3_pending		(ring3_region.pending)

#endif
