/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_TLB_H
#define _ASM_RING3_TLB_H

#include <asm-generic/tlb.h>

#endif
