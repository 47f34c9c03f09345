/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SPINLOCK_TYPES_H
#define _ASM_RING3_SPINLOCK_TYPES_H

#include <asm-generic/qspinlock_types.h>
#include <asm-generic/qrwlock_types.h>

#endif
