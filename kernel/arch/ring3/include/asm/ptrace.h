/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PTRACE_H
#define _ASM_RING3_PTRACE_H

#include <uapi/asm/ptrace.h>

#ifndef __ASSEMBLY__
/*
 * The image never sees a program's registers: the gate keeps them. This is the
 * layout generic code expects, filled with nothing.
 */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};

#define instruction_pointer(regs)		((regs)->ip)
#define instruction_pointer_set(regs, val)	((regs)->ip = (val))
#define user_stack_pointer(regs)		((regs)->sp)
#define kernel_stack_pointer(regs)		((regs)->sp)
#define profile_pc(regs)			instruction_pointer(regs)
#define user_mode(regs)				(0)
#define arch_has_single_step()			(0)
#define current_pt_regs()			(&current->thread.regs)
#define task_pt_regs(task)			(&(task)->thread.regs)
#define signal_pt_regs()			current_pt_regs()
static inline unsigned long regs_return_value(struct pt_regs *regs)
{
	return regs->ax;
}
static inline unsigned long frame_pointer(struct pt_regs *regs)
{
	return regs->bp;
}
#define arch_syscall_is_vdso_sigreturn(regs)	false
#endif

#endif
