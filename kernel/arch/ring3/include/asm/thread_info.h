/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_THREAD_INFO_H
#define _ASM_RING3_THREAD_INFO_H

#include <asm/page.h>

/*
 * Softirqs and interrupts run on the current task's stack. Pages of a stack
 * that were never touched take no host memory.
 */
#define THREAD_SIZE_ORDER	3
#define THREAD_SIZE		(PAGE_SIZE << THREAD_SIZE_ORDER)

#ifndef __ASSEMBLY__
struct thread_info {
	unsigned long	flags;
	unsigned long	syscall_work;
	int		preempt_count;
	u32		cpu;
};

#define INIT_THREAD_INFO(tsk)			\
{						\
	.preempt_count	= INIT_PREEMPT_COUNT,	\
}
#endif

#define TIF_SIGPENDING		0
#define TIF_NEED_RESCHED	1
#define TIF_NOTIFY_SIGNAL	2
#define TIF_NOTIFY_RESUME	3
#define TIF_RESTORE_SIGMASK	4
#define TIF_MEMDIE		5
#define TIF_POLLING_NRFLAG	6
#define TIF_SYSCALL_TRACE	7
#define TIF_SINGLESTEP		8

#define _TIF_SIGPENDING		(1 << TIF_SIGPENDING)
#define _TIF_NEED_RESCHED	(1 << TIF_NEED_RESCHED)
#define _TIF_NOTIFY_SIGNAL	(1 << TIF_NOTIFY_SIGNAL)
#define _TIF_NOTIFY_RESUME	(1 << TIF_NOTIFY_RESUME)
#define _TIF_RESTORE_SIGMASK	(1 << TIF_RESTORE_SIGMASK)
#define _TIF_POLLING_NRFLAG	(1 << TIF_POLLING_NRFLAG)

/* What the way out of a call has to look at. */
#define _TIF_EXIT_WORK		(_TIF_SIGPENDING | _TIF_NEED_RESCHED | \
				 _TIF_NOTIFY_SIGNAL | _TIF_NOTIFY_RESUME | \
				 _TIF_RESTORE_SIGMASK)

#endif
