/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SMP_THREAD_INFO_H
#define _ASM_RING3_SMP_THREAD_INFO_H

#include "../../../include/asm/thread_info.h"

/*
 * The idle poller is on its own stack, where it reads the vCPU's pending word and no task's flags. So a wake-up
 * from another vCPU has to send an interrupt.
 */
#undef TIF_POLLING_NRFLAG
#undef _TIF_POLLING_NRFLAG

#endif
