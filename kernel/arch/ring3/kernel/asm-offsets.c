// SPDX-License-Identifier: GPL-2.0
#define COMPILE_OFFSETS
#include <linux/kbuild.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <asm/thread_info.h>
#include <asm/unistd.h>
#include <asm/ring3.h>
#include <linux/mmu_context.h>
#include "../../../kernel/sched/sched.h"
#include "../vcpu/vcpu.h"

int main(void)
{
	DEFINE(TASK_SP, offsetof(struct task_struct, thread.sp));
	DEFINE(TASK_TI_FLAGS, offsetof(struct task_struct, thread_info.flags));
	DEFINE(EXIT_WORK, _TIF_EXIT_WORK);
	DEFINE(KERNEL_STACK_SIZE, THREAD_SIZE);
	DEFINE(NR_LINUX_CALLS, NR_syscalls);
	BLANK();
#ifdef CONFIG_SMP
	DEFINE(STACK_SIZE, RING3_STACK_SIZE);
	DEFINE(STACK_TASK, offsetof(struct ring3_stack, task));
	DEFINE(STACK_PERCPU, offsetof(struct ring3_stack, percpu));
	DEFINE(STACK_VCPU, offsetof(struct ring3_stack, vcpu));
	DEFINE(T_VCPU, offsetof(struct ring3_thread, image_private[R3T_VCPU]));
#endif
	DEFINE(RQ_NR_RUNNING, offsetof(struct rq, nr_running));
	DEFINE(T_BASE_SP, offsetof(struct ring3_thread, image_private[R3T_BASE_SP]));
	DEFINE(T_OUTSIDE, offsetof(struct ring3_thread, image_private[R3T_OUTSIDE]));
	DEFINE(CPU_WAITS, offsetof(struct ring3_cpu, waits));
	DEFINE(PARK_OUTSIDE, R3_PARK_OUTSIDE);
	BLANK();
#define REGS(name, field)	DEFINE(REGS_##name, offsetof(struct ring3_regs, field))
	REGS(R15, r15);
	REGS(R14, r14);
	REGS(R13, r13);
	REGS(R12, r12);
	REGS(BP, bp);
	REGS(BX, bx);
	REGS(R11, r11);
	REGS(R10, r10);
	REGS(R9, r9);
	REGS(R8, r8);
	REGS(AX, ax);
	REGS(CX, cx);
	REGS(DX, dx);
	REGS(SI, si);
	REGS(DI, di);
	REGS(IP, ip);
	REGS(FLAGS, flags);
	REGS(SP, sp);
	return 0;
}
