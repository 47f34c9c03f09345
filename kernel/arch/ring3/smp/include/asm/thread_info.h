/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SMP_THREAD_INFO_H
#define _ASM_RING3_SMP_THREAD_INFO_H

#include "../../../include/asm/thread_info.h"

/*
 * An idle thread's poll is on its own stack, where it looks at the vCPU's pending word and at
 * no task's flags, so a wake-up from another vCPU has to send an interrupt.
 */
#undef TIF_POLLING_NRFLAG
#undef _TIF_POLLING_NRFLAG

#endif
