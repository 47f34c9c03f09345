// SPDX-License-Identifier: GPL-2.0
/*
 * dead.c - whose holder is gone: is the vCPU free again, or the node lost?
 *
 * As all of vcpu/ this runs on a host thread's own stack.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "internal.h"

/*
 * The holder whose tid that is: the driver, or one that has won the word and not yet said that
 * it drives. What an ended thread left behind may name a tid that is another's by now.
 */
struct ring3_thread *ring3_holder(struct ring3_vcpu *vcpu, u32 tid)
{
	struct ring3_thread *tb = (struct ring3_thread *)READ_ONCE(vcpu->driver);
	int i;

	if (tb && tb->tid == tid)
		return tb;
	/* It takes a vCPU for a moment, and does not drive (adopt_stop.c). */
	if (ring3_adopter_thread.tid == tid)
		return &ring3_adopter_thread;
	for (i = 0; i < ARRAY_SIZE(ring3_region.driver_thread); i++)
		if (ring3_region.driver_thread[i].tid == tid)
			return &ring3_region.driver_thread[i];
	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK])
		if (tb->tid == tid && !(r3t_flags(tb) & R3_F_GONE))
			return tb;
	return NULL;
}

/* The adopter has heard of the death, and goes on with what was under way (adopt.c). */
static bool is_adopted(struct ring3_vcpu *vcpu, struct ring3_thread *holder)
{
	struct ring3_cpu *cpu = vcpu_cpu(vcpu);
	u64 now = ring3_clock();

	if (host_load(&ring3_adopter_proc.state) != 1 || ring3_adopter_proc.threads != RING3_ADOPTS_AFTER ||
	    holder->proc == (unsigned long)&ring3_adopter_proc)
		return false;
	if (cpu->dead != holder->tid) {
		cpu->dead_since = now;
		cpu->dead = holder->tid;
	}
	return now - cpu->dead_since < ADOPT_NS;
}

/*
 * The holder does not let go. If it is dead, it was harmless when it had not yet taken
 * up the baton, or had won the word and not yet said that it drives (entry.S): then the
 * vCPU is free again, and true is returned. Otherwise it died inside kernel code, and
 * where nobody goes on with that, nobody knows in what state it left the node.
 */
bool ring3_take_from_dead(struct ring3_vcpu *vcpu)
{
	u32 o = host_load(&vcpu->owner);
	struct ring3_thread *holder;
	struct ring3_proc *proc;

	if (r3_owner_is_free(o))
		return false;
	holder = ring3_holder(vcpu, o & RING3_OWNER_TID);
	proc = holder ? (struct ring3_proc *)holder->proc : NULL;
	if (!proc)
		return false;
	/* The keeper marks the dead; a thread may also be gone before it does. */
	if (host_load(&proc->state) != RING3_PROC_DEAD &&
	    ring3_host_syscall(__NR_tgkill, proc->pid, holder->tid, 0, 0, 0, 0) != -ESRCH) {
		/*
		 * A zombie is not gone. The keeper learns of a child when its creator comes back from the fork, which may wait
		 * for this vCPU.
		 */
		host_add(&ring3_region.procs_gen, 1);
		ring3_host_futex_wake(&ring3_region.procs_gen, INT_MAX);
		return false;
	}
	/* It may have let go after we looked, and ended in peace. */
	if (!r3_owner_same(host_load(&vcpu->owner), o))
		return false;
	if ((struct ring3_thread *)READ_ONCE(vcpu->driver) != holder ||
	    (host_load(&holder->word) & RING3_WORD_HANDED)) {
		if (r3_reclaim(&vcpu->owner, o) && r3_owner_waits(o))
			vcpu_wake_owner(vcpu, 1);
		return true;
	}
	if (is_adopted(vcpu, holder))
		return false;
	ring3_poison("process %d died inside kernel code", proc->pid);
	return false;
}
