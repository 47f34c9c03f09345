/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_CURRENT_H
#define _ASM_RING3_CURRENT_H

#ifndef __ASSEMBLY__
struct task_struct;

#ifdef CONFIG_SMP
#error "current of the smp flavour goes through GS; not written yet"
#endif
/* One vCPU: whoever runs kernel code runs it for this task. */
extern struct task_struct *ring3_current;
#define get_current()	ring3_current
#define current		get_current()
#endif

#endif
