// SPDX-License-Identifier: GPL-2.0
/*
 * smp.c - several vCPUs: bringing them up, and what one asks of another
 *
 * Theory of operation
 * -------------------
 * vCPU 0 is the region's; the others lie here, and `next` strings them together for the gate
 * and the keeper. All is as with one vCPU, once for each: an owner word, a current task, pending
 * interrupts, a deadline, and a thread of the keeper's (KEEP) that drives when nobody does.
 *
 * A thread and its task belong to one vCPU: the task may run on no other, the thread takes no
 * other. So whoever wants something of a thread finds it where its task runs, and
 * handing a vCPU to a thread never means that it has two.
 *
 * An interrupt between vCPUs is a bit in the target's `pending`. Who drives or polls there sees
 * it; where nobody does, its KEEP is kicked. As for ports: the one who set the bit either saw the
 * owner word taken, or the vCPU free, and whoever frees it looks at `pending` after that.
 *
 * Interrupts do not arrive, they are looked at. Kernel code that waits for another vCPU
 * therefore looks while it waits (cpu_relax()): two that call each other's functions, or one
 * that waits for the lock of one that calls, would wait for ever. And the one that is waited for
 * may not be running: the host is given the CPU now and then (DESIGN rule 10).
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

#define RELAX_TURNS	64		/* of pause, some 3 us, between looks at the host */
#define RELAX_SAME_NS	20000ULL	/* looks are of one wait, when they follow one another */
#define RELAX_YIELDS	16		/* in one wait; then who is waited for may need our CPU for long */
#define RELAX_SLEEP_NS	50000
#define OWNER_NOT_UP	RING3_OWNER_TID	/* no thread has this number */

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

/* From ring3_boot(), on the keeper's stack: before any kernel code can ask where it runs. */
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

/* The keeper says how many: it has a KEEP for each. */
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

/* The vCPU's KEEP begins with this as its current task. */
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
	/* The last word of its parked frame is where it goes on. */
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

	/* Who set it first has seen to the rest. */
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

/* A panic, or a reboot asked for: the node is poisoned, and the others leave by that. */
void smp_send_stop(void)
{
}

/*
 * A turn of waiting in kernel code for what another vCPU does. Its thread may have lost its CPU to
 * us or to others: we yield, and when that does not help we sleep, so that the host can
 * put it where we were.
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
		ring3_abandon();	/* who is waited for may be the dead one */
	if (ring3_clock() - cpu->relaxed_at > RELAX_SAME_NS)
		cpu->yields = 0;
	if (cpu->yields++ < RELAX_YIELDS)
		ring3_host_yield();
	else
		ring3_host_nap(RELAX_SLEEP_NS);
	cpu->relaxed_at = ring3_clock();
}

/*
 * Threads are dealt out to the vCPUs in turn as they are made: those of one program, and programs of
 * one thread each, run beside each other.
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
