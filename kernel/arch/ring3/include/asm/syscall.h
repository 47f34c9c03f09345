/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_SYSCALL_H
#define _ASM_RING3_SYSCALL_H

#include <uapi/linux/audit.h>
#include <linux/sched.h>

typedef long (*sys_call_ptr_t)(unsigned long, unsigned long, unsigned long,
			       unsigned long, unsigned long, unsigned long);
extern const sys_call_ptr_t sys_call_table[];

/* Program registers live in the gate; nothing here can be looked at. */
static inline int syscall_get_nr(struct task_struct *task, struct pt_regs *regs)
{
	return -1;
}

static inline void syscall_rollback(struct task_struct *task, struct pt_regs *regs)
{
}

static inline long syscall_get_error(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline long syscall_get_return_value(struct task_struct *task, struct pt_regs *regs)
{
	return 0;
}

static inline void syscall_get_arguments(struct task_struct *task, struct pt_regs *regs,
					 unsigned long *args)
{
	memset(args, 0, 6 * sizeof(args[0]));
}

static inline int syscall_get_arch(struct task_struct *task)
{
	return AUDIT_ARCH_X86_64;
}

#endif
