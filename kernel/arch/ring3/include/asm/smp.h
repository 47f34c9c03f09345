/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SMP_H
#define _ASM_RING3_SMP_H

#define raw_smp_processor_id()	(current_thread_info()->cpu)

#endif
