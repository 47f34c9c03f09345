// SPDX-License-Identifier: GPL-2.0
/*
 * adopt_drive.c - the adopter's threads that continue kernel code
 *
 * Theory of operation
 * -------------------
 * Continued kernel code may drive for others for a while, or wait for a lock that the code on another vCPU has. The
 * adopter's first thread hears of deaths and stops (adopt.c), and some of those end that very wait. So it does not
 * drive. Each vCPU has a successor: a thread of the adopter's process with a thread block of its own.
 *
 *	ring3_succeed()			The successor becomes owner and driver of the vCPU. It does not run yet. From now
 *					on the dead thread is not needed, and may be let go.
 *	ring3_successor_goes()		It loads the registers and continues.
 *	ring3_successor_is_home()	False from then on until it sleeps again. It releases the vCPU before that, so
 *					the next owner may have died already. That one's context waits (adopt.c).
 *
 * The process's other parts are shared: memory, descriptors, handlers. Only the first thread gets its signals.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/signal_types.h>
#include <uapi/linux/futex.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "adopt.h"

struct successor {
	struct ring3_thread tb;
	struct ring3_regs regs;
	u32 away;		/* futex word: 1: it continues `regs', or is on its way home */
};
static struct successor successors[NR_CPUS];

long ring3_clone(unsigned long flags, unsigned long top, u32 *tid, void (*fn)(struct successor *), struct successor *arg);
void ring3_go_on(struct ring3_thread *me, struct ring3_regs *regs);

static struct successor *successor_of(struct ring3_vcpu *vcpu)
{
	return &successors[vcpu_cpu(vcpu) - ring3_cpus];
}

static unsigned long stack_of(struct successor *it)
{
	return adopt_memory() + ADOPT_SUCCESSORS_AT + (it - successors) * 2 * ADOPT_STACK_BYTES;
}

static void live(struct successor *it)
{
	ring3_adopt_signal_stack(stack_of(it) + ADOPT_STACK_BYTES);
	for (;;) {
		while (!host_load(&it->away))
			ring3_host_syscall(__NR_futex, (long)&it->away, FUTEX_WAIT, 0, 0, 0, 0);
		ring3_go_on(&it->tb, &it->regs);
		host_store(&it->away, 0);
		/* Another context may wait. */
		ring3_host_syscall(__NR_tgkill, ring3_adopter_proc.pid, ring3_adopter_proc.pid, SIGCHLD, 0, 0, 0);
	}
}

long ring3_successors_start(void)
{
	const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
				    CLONE_PARENT_SETTID;
	struct ring3_vcpu *vcpu;
	struct successor *it;
	long ret;

	for_each_vcpu(vcpu) {
		it = successor_of(vcpu);
		ret = ring3_host_syscall(__NR_mmap, stack_of(it), 2 * ADOPT_STACK_BYTES, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (ret < 0)
			return ret;
		/* The adopter before this one. */
		if (it->tb.tid && r3_owner_is(host_load(&vcpu->owner), it->tb.tid))
			ring3_poison("the adopter died in kernel code");
		memset(it, 0, sizeof(*it));
		it->tb.self = (unsigned long)&it->tb;
		it->tb.region = (unsigned long)&ring3_region;
		it->tb.proc = (unsigned long)&ring3_adopter_proc;
#ifdef CONFIG_SMP
		it->tb.image_private[R3T_VCPU] = (unsigned long)vcpu;
#endif
		ret = ring3_clone(flags, stack_of(it) + ADOPT_STACK_BYTES, &it->tb.tid, live, it);
		if (ret < 0)
			return ret;
	}
	return 0;
}

bool ring3_successor_is_home(struct ring3_vcpu *vcpu)
{
	return !host_load(&successor_of(vcpu)->away);
}

void ring3_succeed(struct ring3_vcpu *vcpu, const struct ring3_regs *regs)
{
	struct successor *it = successor_of(vcpu);

	it->regs = *regs;
	r3t_call(&it->tb) = R3_CALL_DONE;
	r3_pass_to(&vcpu->owner, it->tb.tid);
	WRITE_ONCE(vcpu->driver, (unsigned long)&it->tb);
}

void ring3_successor_goes(struct ring3_vcpu *vcpu)
{
	struct successor *it = successor_of(vcpu);

	host_store(&it->away, 1);
	ring3_host_futex_wake(&it->away, 1);
}
