/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PROCESSOR_H
#define _ASM_RING3_PROCESSOR_H

#include <asm/ptrace.h>
#include <asm/vdso/processor.h>

/* Of user addresses; those inside the region are refused by access_ok(). */
#define TASK_SIZE		0x7ffffffff000UL
#define TASK_SIZE_MAX		TASK_SIZE
#define TASK_UNMAPPED_BASE	0UL
#define STACK_TOP		TASK_SIZE
#define STACK_TOP_MAX		TASK_SIZE

#ifndef __ASSEMBLY__
struct ring3_thread;
struct ring3_proc;

struct thread_struct {
	unsigned long		sp;	/* saved by __switch_to and ring3_park */
	struct ring3_thread	*tb;	/* thread block; NULL for kernel threads */
	struct ring3_proc	*proc;	/* host process whose memory user pointers mean */
	struct pt_regs		regs;
};

#define INIT_THREAD	{ }

#define KSTK_EIP(tsk)	0UL
#define KSTK_ESP(tsk)	0UL

static inline void start_thread(struct pt_regs *regs, unsigned long ip, unsigned long sp)
{
}

struct task_struct;
static inline unsigned long __get_wchan(struct task_struct *p)
{
	return 0;
}
#endif

#endif
