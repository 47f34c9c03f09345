// SPDX-License-Identifier: GPL-2.0
/*
 * smp.c - several vCPUs: starting them, and interrupts between them
 *
 * Theory of operation
 * -------------------
 * vCPU 0 is in the region's head; the others are here, and `next` links them for the gate and the keeper. Each vCPU
 * has what a single one has: an owner word, a current task, pending interrupts, a deadline, and a thread of the
 * keeper (KEEP) that drives when no other thread does.
 *
 * A thread and its task belong to one vCPU: the task runs on no other, and the thread takes no other. So a thread
 * is always found where its task runs, and a vCPU is never handed to a thread that has one already.
 *
 * An interrupt between vCPUs is a bit in the target's `pending`. A driver or poller there sees it; if there is
 * none, its KEEP is kicked. As for ports: after setting the bit, the sender sees the vCPU owned or free. If it is
 * owned, the owner reads `pending` after it has released the vCPU.
 *
 * Interrupts do not arrive: kernel code polls for them. So kernel code that waits for another vCPU polls while it
 * waits (cpu_relax()). Otherwise two vCPUs that call each other's functions would wait for ever, and so would one
 * that waits for a lock whose owner calls it. And the thread that it waits for may have no CPU: the waiter yields
 * its CPU now and then (DESIGN rule 10).
 */
#include <linux/cpu.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/hotplug.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/sched/task_stack.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <asm/ring3.h>
#include <asm/ring3_host.h>
#include <asm/unistd.h>
#include "../vcpu/vcpu.h"

#define RELAX_TURNS	64		/* of pause, some 3 us, before yielding to the host */
#define RELAX_SAME_NS	20000ULL	/* calls belong to one wait if they follow each other this closely */
#define RELAX_YIELDS	16		/* yields in one wait; after them the thread that is waited for may need our CPU for long */
#define RELAX_SLEEP_NS	50000
#define OWNER_NOT_UP	RING3_OWNER_TID	/* not the tid of any thread */

static struct {
	struct ring3_vcpu vcpu;
} more_vcpus[NR_CPUS - 1] ____cacheline_aligned = {
	[0 ... NR_CPUS - 2] = { { .owner = OWNER_NOT_UP, .deadline = U64_MAX } },
};

void ring3_secondary(void);
void __noreturn ring3_abandon(void);
void ring3_boot_vcpus(struct ring3_thread *init_thread);
void ring3_secondary_start(void);

static struct ring3_vcpu *vcpu_of(unsigned int cpu)
{
	return cpu ? &more_vcpus[cpu - 1].vcpu : &ring3_region.vcpu[0];
}

/* Called by ring3_boot(), on the keeper's stack: before any kernel code can ask on which vCPU it runs. */
void ring3_boot_vcpus(struct ring3_thread *init_thread)
{
	struct ring3_stack *foot = (struct ring3_stack *)init_stack;
	struct ring3_vcpu *vcpu = &ring3_region.vcpu[0];
	unsigned int cpu;

	BUILD_BUG_ON(RING3_STACK_SIZE != THREAD_SIZE);
	BUILD_BUG_ON(NR_CPUS > RING3_VCPUS_MAX);
	foot->task = &init_task;
	foot->vcpu = vcpu;
	vcpu->task = (unsigned long)&init_task;
	vcpu->deadline = U64_MAX;
	for (cpu = 0; cpu < NR_CPUS; cpu++)
		vcpu_of(cpu)->image = (unsigned long)&ring3_cpus[cpu];

	init_thread->image_private[R3T_VCPU] = (unsigned long)vcpu;
	ring3_region.driver_thread[0].image_private[R3T_VCPU] = (unsigned long)vcpu;
	ring3_region.driver_thread[1].image_private[R3T_VCPU] = (unsigned long)vcpu;
	for (cpu = 1; cpu < NR_CPUS; cpu++)
		vcpu_keeper(vcpu_of(cpu))->image_private[R3T_VCPU] =
			(unsigned long)vcpu_of(cpu);
}

/* The keeper passes the number: it has a KEEP for each. */
void __init ring3_setup_cpus(void)
{
	const char *arg = strstr(boot_command_line, "ring3_cpus=");
	unsigned int cpu, n = arg ? simple_strtoul(arg + strlen("ring3_cpus="), NULL, 10) : 1;

	n = clamp(n, 1U, (unsigned int)NR_CPUS);
	for (cpu = 1; cpu < n; cpu++) {
		set_cpu_possible(cpu, true);
		vcpu_of(cpu - 1)->next = (unsigned long)vcpu_of(cpu);
	}
}

void __init smp_prepare_boot_cpu(void)
{
	ring3_stack()->percpu = __per_cpu_offset[0];
}

void __init smp_prepare_cpus(unsigned int max_cpus)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		if (cpu < max_cpus)
			set_cpu_present(cpu, true);
}

void __init smp_cpus_done(unsigned int max_cpus)
{
}

/* The vCPU's KEEP starts with this as its current task. */
void ring3_secondary_start(void)
{
	unsigned int cpu = smp_processor_id();

	mmgrab(&init_mm);
	current->active_mm = &init_mm;
	notify_cpu_starting(cpu);
	ring3_timer_start();
	set_cpu_online(cpu, true);
	local_irq_enable();
	cpu_startup_entry(CPUHP_AP_ONLINE_IDLE);
}

int __cpu_up(unsigned int cpu, struct task_struct *idle)
{
	struct ring3_vcpu *vcpu = vcpu_of(cpu);
	struct ring3_stack *foot = task_stack_page(idle);
	u64 end = ring3_clock() + NSEC_PER_SEC;

	foot->percpu = __per_cpu_offset[cpu];
	foot->vcpu = vcpu;
	foot->cpu = cpu;
	/* The last word of its parked frame is the address at which it continues. */
	((unsigned long *)idle->thread.sp)[6] = (unsigned long)ring3_secondary;
	vcpu->task = (unsigned long)idle;
	host_or(vcpu_pending(vcpu), RING3_IRQ_RESCHED);
	r3_release(&vcpu->owner);
	ring3_kick(vcpu);
	while (!cpu_online(cpu)) {
		if (ring3_clock() > end) {
			pr_err("vCPU %u: its keeper does not come\n", cpu);
			return -EIO;
		}
		cpu_relax();
	}
	return 0;
}

static void interrupt(unsigned int cpu, u32 bit)
{
	struct ring3_vcpu *vcpu = vcpu_of(cpu);

	/* The thread that set the bit first has done the rest. */
	if (host_or(vcpu_pending(vcpu), bit) & bit)
		return;
	if (!host_load(&vcpu->owner))
		ring3_kick(vcpu);
}

void arch_smp_send_reschedule(int cpu)
{
	interrupt(cpu, RING3_IRQ_RESCHED);
}

void arch_send_call_function_single_ipi(int cpu)
{
	interrupt(cpu, RING3_IRQ_CALL);
}

void arch_send_call_function_ipi_mask(const struct cpumask *mask)
{
	unsigned int cpu;

	for_each_cpu(cpu, mask)
		interrupt(cpu, RING3_IRQ_CALL);
}

void ring3_handle_ipi(u32 bits)
{
	if (bits & RING3_IRQ_RESCHED)
		scheduler_ipi();
	if (bits & RING3_IRQ_CALL)
		generic_smp_call_function_interrupt();
}

/* A panic or a requested reboot: the node is poisoned, which makes the other vCPUs leave. */
void smp_send_stop(void)
{
}

/*
 * One turn of waiting in kernel code for another vCPU. Its thread may have lost its CPU to this or another thread:
 * first yields; if that does not help, sleeps, so that the host can run it on this CPU.
 */
void ring3_relax(void)
{
	struct ring3_stack *foot = ring3_stack();
	struct ring3_cpu *cpu = &ring3_cpus[foot->cpu];

	if (foot->irq_enabled && READ_ONCE(foot->vcpu->pending))
		ring3_irq_run();
	if (++cpu->relaxed % RELAX_TURNS)
		return;
	if (unlikely(host_load(&ring3_region.state) >= RING3_POISONED))
		ring3_abandon();	/* the thread that is waited for may be the dead one */
	if (ring3_clock() - cpu->relaxed_at > RELAX_SAME_NS)
		cpu->yields = 0;
	if (cpu->yields++ < RELAX_YIELDS)
		ring3_host_yield();
	else
		ring3_host_nap(RELAX_SLEEP_NS);
	cpu->relaxed_at = ring3_clock();
}

/*
 * New threads are assigned to the vCPUs in turn: so threads of one program, and programs of one thread each, run in
 * parallel.
 */
void ring3_place_task(struct task_struct *task, struct ring3_thread *tb)
{
	static atomic_t turn = ATOMIC_INIT(0);
	unsigned int cpu = cpumask_nth((unsigned int)atomic_inc_return(&turn) %
				       num_online_cpus(), cpu_online_mask);

	tb->image_private[R3T_VCPU] = (unsigned long)vcpu_of(cpu);
	cpumask_copy(&task->cpus_mask, cpumask_of(cpu));
	task->nr_cpus_allowed = 1;
}
