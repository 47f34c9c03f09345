/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_IRQ_H
#define _ASM_RING3_IRQ_H

#define NR_IRQS		32

#include <asm-generic/irq.h>

#endif
