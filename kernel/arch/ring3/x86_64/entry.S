/* SPDX-License-Identifier: GPL-2.0 */
/*
 * entry.S - entering and leaving the image, and switching stacks
 *
 * Theory of operation
 * -------------------
 * There are three kinds of stacks. A host thread has its own (the gate's). Every task has a kernel stack in the
 * region. The two are connected only while the thread drives. Whatever does not run is parked: six callee-saved
 * registers and a return address are on its stack, and the stack pointer is in
 *
 *	thread block.host_sp	for a host thread inside the image
 *	task.thread.sp		for a task (by __switch_to or ring3_park)
 *
 * A task whose thread is outside is parked in ring3_task_main(), and thread block.base_sp points to that frame. The
 * fast path runs the call on the same stack below the frame and returns by `ret`, so that calls and returns stay
 * paired (two unpaired switches cost 40 ns, this costs 3). If the call is completed by another thread, the stack is
 * cut back to base_sp, and ring3_task_main() continues as if it had been resumed. A task can also be current and
 * parked elsewhere (it yielded in the middle of a switch): `outside` tells.
 *
 * The fast path releases the vCPU with a plain store, which takes 5 ns less than a locked instruction. No other
 * thread changes the owner word while its owner lives and does not poll, except a waiter that sets WAITERS in it.
 * That bit, and bits set in `pending', may arrive between the check and the store, and be missed. So a waiter also
 * announces itself in `pending', which is read again after the store, and it does not sleep before a store that was
 * under way must have arrived (vcpu/lock.c). A thread that sets `pending' for another reason looks again (KEEP,
 * DRIVE, a watcher), at the latest at the next tick. The tick runs as long as a program's task is current; without
 * one, no thread is on this path. A waiter that is awake leaves a note (CPU_WAITS), which is a hint.
 *
 * If a vCPU can get interrupts from others (smp), it is released by a locked instruction: a thread that sets
 * `pending' and sees the owner word taken relies on the check after the release (smp.c).
 *
 * If a thread is killed in here, or anywhere in kernel code, another continues its code from the same instruction
 * (adopt.c). Code on a task's stack that has read which thread drives, or holds that thread's block, is continued
 * from that read instead: between ring3_returned and ring3_left, ring3_settled and ring3_settled_end, ring3_parking
 * and ring3_parked. In these ranges every action must be safe to repeat.
 *
 * Registers below: r12 thread block, rbp its task, ebx tid, r14 result, r13 (smp) its vCPU. With one vCPU, the vCPU
 * is at a constant address.
 */
#include <linux/linkage.h>
#include <generated/asm-offsets.h>
#include <ring3/ring3_lock.h>

#define REGION(off)	ring3_region + (off)(%rip)

#ifdef CONFIG_SMP
/* Fields of the vCPU in r13, to which the thread in r12 (r10 on entry) belongs. */
#define VCPU(off)		(off)(%r13)
#define PENDING			VCPU_PENDING(%r13)
#define CURRENT			VCPU_TASK(%r13)
#define SLOW			.Lslow_saved
.macro OR_WAITS
	movq	VCPU(VCPU_IMAGE), %rcx
	orl	CPU_WAITS(%rcx), %eax
.endm
.macro LOAD_VCPU
	movq	T_VCPU(%r12), %r13
.endm
.macro TAKE
	PUSH_SAVED
	movq	T_VCPU(%r10), %r13
	R3_TAKE_FREE %r11d, VCPU(VCPU_OWNER)
.endm
.macro TAKEN
.endm
.macro SINGLE_TASK
	FOOT	%rcx
	movq	STACK_PERCPU(%rcx), %rcx
	leaq	runqueues + RQ_NR_RUNNING(%rip), %rdx
	cmpl	$1, (%rdx, %rcx)
.endm
/* Releases the vCPU; fails if a thread waits for it. */
.macro RELEASE failed
	movl	%ebx, %eax
	xorl	%ecx, %ecx
	R3_RELEASE_UNWAITED %ecx, VCPU(VCPU_OWNER)
	jne	\failed
.endm
#else
#define VCPU(off)		REGION(REGION_VCPU + (off))
#define PENDING			REGION(REGION_PENDING)
#define CURRENT			ring3_current(%rip)
#define SLOW			.Lslow
/* eax, and its flags, say whether a thread that waits awake has left a note. */
.macro OR_WAITS
#ifdef CONFIG_RING3_SIM
	testl	%eax, %eax
#else
	orl	ring3_cpus + CPU_WAITS(%rip), %eax
#endif
.endm
.macro LOAD_VCPU
.endm
#ifdef CONFIG_RING3_SIM
/* The thread has kept the vCPU, or has to wait for its turn. */
.macro TAKE
	cmpl	%r11d, VCPU(VCPU_OWNER)
.endm
#else
/* The locked instruction waits for all earlier stores: so it comes first, then the pushes. */
.macro TAKE
	R3_TAKE_FREE %r11d, VCPU(VCPU_OWNER)
.endm
#endif
.macro TAKEN
	PUSH_SAVED
.endm
.macro SINGLE_TASK
	cmpl	$1, runqueues + RQ_NR_RUNNING(%rip)
.endm
.macro RELEASE failed
#ifndef CONFIG_RING3_SIM
	cmpl	%ebx, VCPU(VCPU_OWNER)
	jne	\failed
	R3_RELEASE_STORE VCPU(VCPU_OWNER)
#endif
.endm
#endif

/* The call's cost advances virtual time, unless an event is due before: the same as in turn/task.c. */
.macro CHARGE slow
#ifdef CONFIG_RING3_SIM
	movq	ring3_virtual_cost(%rip), %rax
	cmpq	$228, THREAD_NR(%r12)		/* clock_gettime */
	cmoveq	ring3_virtual_read_cost(%rip), %rax
	cmpq	$96, THREAD_NR(%r12)			/* gettimeofday */
	cmoveq	ring3_virtual_read_cost(%rip), %rax
	cmpq	$201, THREAD_NR(%r12)		/* time */
	cmoveq	ring3_virtual_read_cost(%rip), %rax
	addq	ring3_virtual_now(%rip), %rax
	cmpq	VCPU(VCPU_DEADLINE), %rax
	jae	\slow
	movq	%rax, ring3_virtual_now(%rip)
#endif
.endm

/* On a task's stack: fields at its foot. */
#ifdef CONFIG_SMP
#define FOOT_TASK(reg)		STACK_TASK(reg)
.macro FOOT reg
	movq	%rsp, \reg
	andq	$-STACK_SIZE, \reg
.endm
.macro FOOT_DRIVER foot, reg
	movq	STACK_VCPU(\foot), \reg
	movq	VCPU_DRIVER(\reg), \reg
.endm
#else
#define FOOT_TASK(reg)		ring3_current(%rip)
.macro FOOT reg
.endm
.macro FOOT_DRIVER foot, reg
	movq	REGION(REGION_VCPU + VCPU_DRIVER), \reg
.endm
#endif

.macro PUSH_SAVED
	pushq	%rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
.endm

.macro POP_SAVED
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
.endm

	.text

/*
 * enter: see include/ring3.abi for the convention.
 */
SYM_FUNC_START(ring3_enter)
	movl	THREAD_TID(%r10), %r11d
	movq	%rax, THREAD_NR(%r10)
	cmpq	$NR_LINUX_CALLS, %rax
	jae	.Lslow
#ifdef CONFIG_SMP
	/* With one vCPU, the owner word keeps the tid of the thread whose death poisoned the node. */
	cmpl	$RING3_POISONED, REGION(REGION_STATE)
	je	.Lslow
#endif
	xorl	%eax, %eax
	TAKE
	jne	SLOW
	TAKEN
	movq	%rsp, THREAD_HOST_SP(%r10)
	movq	%r10, %r12
	movl	%r11d, %ebx
	movq	CURRENT, %rbp
	cmpq	THREAD_TASK(%r12), %rbp
	jne	.Lslow_owned
	cmpq	$0, T_OUTSIDE(%r12)
	je	.Lslow_owned

	movq	%r12, VCPU(VCPU_DRIVER)
	movq	T_BASE_SP(%r12), %rsp
	andq	$-16, %rsp
	leaq	sys_call_table(%rip), %r11
	movq	THREAD_NR(%r12), %rax
	call	*(%r11, %rax, 8)
	movq	%rax, %r14

SYM_INNER_LABEL(ring3_returned, SYM_L_GLOBAL)
	cmpq	%r12, VCPU(VCPU_DRIVER)
	jne	.Lexit_slow
	testl	$EXIT_WORK, TASK_TI_FLAGS(%rbp)
	jnz	.Lexit_slow
	movl	PENDING, %eax
	orl	VCPU(VCPU_POLLED), %eax
	jnz	.Lexit_slow
	SINGLE_TASK			/* single_task_running() */
	jne	.Lexit_slow
	CHARGE	.Lexit_slow

.Lleave:
	/* Leaves the task's stack first: after the release, any thread may use it. */
	movq	T_BASE_SP(%r12), %rcx
	movq	%rcx, TASK_SP(%rbp)
	movq	THREAD_HOST_SP(%r12), %rsp
SYM_INNER_LABEL(ring3_left, SYM_L_GLOBAL)
	RELEASE	.Lrelease_slow
	movl	PENDING, %eax
	OR_WAITS
	jnz	.Lrelease_slow
	movq	%r14, %rax
	POP_SAVED
	ret

.Lexit_slow:
	movq	%r12, %rdi
	movq	%r14, %rsi
	call	ring3_exit_slow
	testb	%al, %al
	jne	.Lbase
	movq	THREAD_RET(%r12), %r14
	/* The driver may have been killed since it was read. */
SYM_INNER_LABEL(ring3_settled, SYM_L_GLOBAL)
	cmpq	%r12, VCPU(VCPU_DRIVER)
	jne	.Lexit_slow
	jmp	.Lleave
SYM_INNER_LABEL(ring3_settled_end, SYM_L_GLOBAL)
.Lbase:
	movq	T_BASE_SP(%r12), %rsp
	POP_SAVED
	ret

.Lrelease_slow:
	movq	%r14, THREAD_RET(%r12)
	andq	$-16, %rsp
	movq	%r12, %rdi
	call	ring3_host_leave
	jmp	.Lafter_host

.Lslow_owned:
	movl	$1, %eax
	jmp	.Lslow_call
.Lslow:
	PUSH_SAVED
.Lslow_saved:
	movq	%rsp, THREAD_HOST_SP(%r10)
	movq	%r10, %r12
	xorl	%eax, %eax
.Lslow_call:
	movq	%rdi, THREAD_ARGS + 0(%r12)
	movq	%rsi, THREAD_ARGS + 8(%r12)
	movq	%rdx, THREAD_ARGS + 16(%r12)
	movq	%rcx, THREAD_ARGS + 24(%r12)
	movq	%r8, THREAD_ARGS + 32(%r12)
	movq	%r9, THREAD_ARGS + 40(%r12)
	andq	$-16, %rsp
	movq	%r12, %rdi
	movl	%eax, %esi
	call	ring3_host_enter

	/* eax: 1 resume the current task here, 0 the thread goes home */
.Lafter_host:
	testl	%eax, %eax
	je	.Lhome
	LOAD_VCPU
	movq	CURRENT, %rax
	movq	TASK_SP(%rax), %rsp
	POP_SAVED
	ret
.Lhome:
	movq	THREAD_HOST_SP(%r12), %rsp
	movq	THREAD_RET(%r12), %rax
	POP_SAVED
	ret
SYM_FUNC_END(ring3_enter)

/*
 * void ring3_park(mode, to): the current task stops here; the host thread continues on its own stack, in
 * ring3_host_park(). Returns when a thread, maybe another one, resumes the task.
 */
SYM_FUNC_START(ring3_park)
	PUSH_SAVED
	FOOT	%rcx
	movq	FOOT_TASK(%rcx), %rax
	movq	%rsp, TASK_SP(%rax)
SYM_INNER_LABEL(ring3_parking, SYM_L_GLOBAL)
	FOOT_DRIVER %rcx, %r12
	cmpq	$PARK_OUTSIDE, %rdi
	jne	1f
	movq	%rsp, T_BASE_SP(%r12)
	movq	$1, T_OUTSIDE(%r12)
1:	movq	THREAD_HOST_SP(%r12), %rsp
SYM_INNER_LABEL(ring3_parked, SYM_L_GLOBAL)
	andq	$-16, %rsp
	movq	%rsi, %rdx
	movq	%rdi, %rsi
	movq	%r12, %rdi
	call	ring3_host_park
	jmp	.Lafter_host
SYM_FUNC_END(ring3_park)

/* The node is poisoned: the driver leaves the kernel stack for good. */
SYM_FUNC_START(ring3_abandon)
	FOOT	%rcx
	FOOT_DRIVER %rcx, %r12
	movq	$-5, THREAD_RET(%r12)		/* -EIO */
	jmp	.Lhome
SYM_FUNC_END(ring3_abandon)

/* struct task_struct *__switch_to_asm(prev, next): rax = prev. */
SYM_FUNC_START(__switch_to_asm)
	PUSH_SAVED
	movq	%rsp, TASK_SP(%rdi)
	movq	TASK_SP(%rsi), %rsp
	movq	%rdi, %rax
	POP_SAVED
	ret
SYM_FUNC_END(__switch_to_asm)

/* First frame of a new task: rbx = function, rbp = argument (copy_thread). */
SYM_FUNC_START(ring3_ret_from_fork)
	movq	%rax, %rdi
	call	schedule_tail
	movq	%rbp, %rdi
	call	*%rbx
	movl	$0, %edi
	call	do_exit
SYM_FUNC_END(ring3_ret_from_fork)

#ifdef CONFIG_SMP
/* First frame of a vCPU's idle task (__cpu_up). */
SYM_FUNC_START(ring3_secondary)
	call	ring3_secondary_start
	ud2
SYM_FUNC_END(ring3_secondary)
#endif

/* long boot(struct ring3_thread *init_thread) */
	.section .init.text, "ax"
SYM_FUNC_START(ring3_boot)
	PUSH_SAVED
	movq	%rsp, THREAD_HOST_SP(%rdi)
	movq	%rdi, %r12
	andq	$-16, %rsp
	call	ring3_relocate
#ifdef CONFIG_SMP
	movq	%r12, %rdi
	call	ring3_boot_vcpus
#endif
	movl	THREAD_TID(%r12), %eax
	R3_BOOT_OWNER %eax, REGION(REGION_VCPU + VCPU_OWNER)
	movq	%r12, REGION(REGION_VCPU + VCPU_DRIVER)
	leaq	init_stack + KERNEL_STACK_SIZE(%rip), %rsp
	call	start_kernel
	ud2
SYM_FUNC_END(ring3_boot)
	.text

/* void ring3_enter_drive(tb): enter(DRIVE) for C code on a host stack. */
SYM_FUNC_START(ring3_enter_drive)
	movq	%rdi, %r10
	movl	$0x1000, %eax
	jmp	ring3_enter
SYM_FUNC_END(ring3_enter_drive)

/*
 * void ring3_go_on(tb, regs): the thread, which owns the vCPU, continues kernel code that another thread had these
 * registers in; returns when it goes home. Nothing below the stack pointer is in use.
 */
SYM_FUNC_START(ring3_go_on)
	PUSH_SAVED
	movq	%rsp, THREAD_HOST_SP(%rdi)
	movq	%rsi, %rdi
	movq	REGS_SP(%rdi), %rcx
	movq	REGS_IP(%rdi), %rax
	movq	%rax, -8(%rcx)
	movq	REGS_FLAGS(%rdi), %rax
	movq	%rax, -16(%rcx)
	movq	REGS_DI(%rdi), %rax
	movq	%rax, -24(%rcx)
	leaq	-24(%rcx), %rsp
	movq	REGS_R15(%rdi), %r15
	movq	REGS_R14(%rdi), %r14
	movq	REGS_R13(%rdi), %r13
	movq	REGS_R12(%rdi), %r12
	movq	REGS_BP(%rdi), %rbp
	movq	REGS_BX(%rdi), %rbx
	movq	REGS_R11(%rdi), %r11
	movq	REGS_R10(%rdi), %r10
	movq	REGS_R9(%rdi), %r9
	movq	REGS_R8(%rdi), %r8
	movq	REGS_AX(%rdi), %rax
	movq	REGS_CX(%rdi), %rcx
	movq	REGS_DX(%rdi), %rdx
	movq	REGS_SI(%rdi), %rsi
	popq	%rdi
	popfq
	ret
SYM_FUNC_END(ring3_go_on)

/* void ring3_on_stack(top, fn, arg): calls fn(arg) on that stack; does not return. */
SYM_FUNC_START(ring3_on_stack)
	movq	%rdi, %rsp
	movq	%rdx, %rdi
	xorl	%ebp, %ebp
	call	*%rsi
	ud2
SYM_FUNC_END(ring3_on_stack)

/* Returns from the adopter's signal handlers. */
SYM_FUNC_START(ring3_sigreturn)
	movl	$15, %eax		/* rt_sigreturn */
	syscall
	ud2
SYM_FUNC_END(ring3_sigreturn)

/*
 * long ring3_clone(flags, top, tid, fn, arg): clone(); the new thread calls fn(arg) on the stack below top. fn does
 * not return.
 */
SYM_FUNC_START(ring3_clone)
	movq	%rcx, %r9
	xorl	%r10d, %r10d
	movl	$56, %eax		/* clone */
	syscall
	testq	%rax, %rax
	je	1f
	ret
1:	xorl	%ebp, %ebp
	movq	%r8, %rdi
	call	*%r9
	ud2
SYM_FUNC_END(ring3_clone)

/*
 * long ring3_seize(tid, options, called): ptrace(PTRACE_SEIZE), unless *called is not 0. A signal handler that sets it
 * and has interrupted this before ring3_seized continues at ring3_seize_not. So a signal never comes too early to end
 * the call.
 */
SYM_FUNC_START(ring3_seize)
	movq	%rdx, %r8
	movq	%rsi, %r10
	movl	%edi, %esi
	movl	$0x4206, %edi		/* PTRACE_SEIZE */
	xorl	%edx, %edx
	cmpl	$0, (%r8)
	jne	ring3_seize_not
	movl	$101, %eax		/* ptrace */
	syscall
SYM_INNER_LABEL(ring3_seized, SYM_L_GLOBAL)
	ret
SYM_INNER_LABEL(ring3_seize_not, SYM_L_GLOBAL)
	movq	$-4, %rax		/* -EINTR */
	ret
SYM_FUNC_END(ring3_seize)

	.section .note.GNU-stack, "", @progbits
