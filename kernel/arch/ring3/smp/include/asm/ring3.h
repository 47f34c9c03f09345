/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SMP_RING3_H
#define _ASM_RING3_SMP_RING3_H

#include <asm/stack.h>
#include "../../../include/asm/ring3.h"

/* The vCPU that this kernel code runs on. */
#undef ring3_vcpu
#define ring3_vcpu	(ring3_stack()->vcpu)

#endif
