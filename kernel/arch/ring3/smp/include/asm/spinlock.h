/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SPINLOCK_H
#define _ASM_RING3_SPINLOCK_H

#include <asm-generic/qspinlock.h>
#include <asm-generic/qrwlock.h>

#endif
