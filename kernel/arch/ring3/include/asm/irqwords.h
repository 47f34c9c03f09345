/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_IRQWORDS_H
#define _ASM_RING3_IRQWORDS_H

/*
 * Words of the one vCPU that nearly every file of the kernel reads: interrupts are enabled, interrupts are
 * pending, the thread block that drives. They lie in struct ring3_region, and vmlinux.lds.S names them there: so
 * a change of the contract does not compile the whole kernel anew.
 */
#include <linux/types.h>

extern u32 ring3_irq_enabled, ring3_pending;
extern u64 ring3_driving;

#endif
