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
	DEFINE(REGION_SIZE, sizeof(struct ring3_region));
	DEFINE(REGION_VERSION, offsetof(struct ring3_region, version));
	DEFINE(REGION_BASE, offsetof(struct ring3_region, base));
	DEFINE(REGION_STATE, offsetof(struct ring3_region, state));
	DEFINE(POISONED, RING3_POISONED);
	DEFINE(REGION_PENDING, offsetof(struct ring3_region, pending));
	DEFINE(REGION_VCPU, offsetof(struct ring3_region, vcpu[0]));
	DEFINE(V_OWNER, offsetof(struct ring3_vcpu, owner));
	DEFINE(V_DEADLINE, offsetof(struct ring3_vcpu, deadline));
	DEFINE(V_DRIVER, offsetof(struct ring3_vcpu, driver));
	DEFINE(V_IRQ_ENABLED, offsetof(struct ring3_vcpu, irq_enabled));
	DEFINE(V_EXIT_WORK, offsetof(struct ring3_vcpu, polled));
#ifdef CONFIG_SMP
	/* include/ring3_smp.h */
	DEFINE(V_PENDING, offsetof(struct ring3_vcpu, pending));
	DEFINE(V_TASK, offsetof(struct ring3_vcpu, task));
	DEFINE(STACK_SIZE, RING3_STACK_SIZE);
	DEFINE(STACK_TASK, offsetof(struct ring3_stack, task));
	DEFINE(STACK_PERCPU, offsetof(struct ring3_stack, percpu));
	DEFINE(STACK_VCPU, offsetof(struct ring3_stack, vcpu));
	DEFINE(T_VCPU, offsetof(struct ring3_thread, image_private[R3T_VCPU]));
#endif
	DEFINE(R3_MAGIC_LO, (u32)RING3_MAGIC);
	DEFINE(R3_MAGIC_HI, (u32)(RING3_MAGIC >> 32));
	DEFINE(R3_ABI, RING3_ABI);
	BLANK();
	DEFINE(T_HOST_SP, offsetof(struct ring3_thread, host_sp));
	DEFINE(T_TASK, offsetof(struct ring3_thread, task));
	DEFINE(T_TID, offsetof(struct ring3_thread, tid));
	DEFINE(T_RET, offsetof(struct ring3_thread, ret));
	DEFINE(RQ_NR_RUNNING, offsetof(struct rq, nr_running));
	DEFINE(T_NR, offsetof(struct ring3_thread, nr));
	DEFINE(T_ARGS, offsetof(struct ring3_thread, args));
	DEFINE(T_BASE_SP, offsetof(struct ring3_thread, image_private[R3T_BASE_SP]));
	DEFINE(T_OUTSIDE, offsetof(struct ring3_thread, image_private[R3T_OUTSIDE]));
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
