// SPDX-License-Identifier: GPL-2.0
/*
 * keep.c - the keeper's thread of a node in virtual time: errands, and a look whether the turn goes on
 *
 * All of this runs on a host thread's own stack: see turn.h. It has nothing to do with time: the node does
 * the same whether or not it gets a CPU.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <asm/ring3.h>
#include <asm/unistd.h>
#include "../kernel/errand.h"
#include "../vcpu/internal.h"
#include "turn.h"

void ring3_host_rest(void)
{
}

void ring3_ports_call(void)
{
}

/*
 * The holder is gone, and had nothing of the kernel's under way: the vCPU is free. Nobody takes it before the keeper has
 * told the node of the process's end (REAP), so that no time passes until then.
 */
static bool take_from_dead(struct ring3_vcpu *vcpu, u32 o)
{
	struct ring3_thread *tb = ring3_holder(vcpu, o & RING3_OWNER_TID);
	struct ring3_proc *proc = tb ? (struct ring3_proc *)tb->proc : NULL;

	if (!proc || ring3_host_syscall(__NR_tgkill, proc->pid, tb->tid, 0, 0, 0, 0) != -ESRCH)
		return false;
	if (host_load(&vcpu->owner) != o)
		return false;
	if ((tb->task && r3t_outside(tb)) || (r3t_flags(tb) & R3_F_GONE) || (host_load(&tb->word) & RING3_WORD_HANDED)) {
		if (r3_reclaim(&vcpu->owner, o) && host_xchg(&turn_comers, 0))
			host_or(vcpu_pending(vcpu), RING3_IRQ_COMER);
		return true;
	}
	ring3_poison("process %d died inside kernel code", proc->pid);
	return true;
}

static void look(struct ring3_vcpu *vcpu)
{
	u32 o = host_load(&vcpu->owner);

	if (!o)
		turn_look(NULL, 0);
	else if (!take_from_dead(vcpu, o))
		turn_look(ring3_holder(vcpu, o & RING3_OWNER_TID), o);
}

long ring3_host_keep(struct ring3_thread *tb)
{
	struct ring3_vcpu *vcpu = r3t_vcpu(tb);
	u32 *word = vcpu_kick_word(vcpu), kick;
	unsigned long host_sp = tb->host_sp;

	while (!ring3_poisoned()) {
		turn_jitter();
		kick = host_load(word);
		ring3_populate_serve(vcpu);
		ring3_errands();
		turn_trace_write();
		if (host_load(&ring3_region.state) == RING3_UP)
			look(vcpu);
		turn_name_deadlock();
		if (host_load(vcpu_pending(vcpu)) && !host_load(&vcpu->owner)) {
			ring3_enter_drive(tb);
			tb->host_sp = host_sp;
		}
		ring3_host_futex_wait(word, kick, turn_look_ns());
	}
	ring3_errands();
	turn_trace_write();
	return 0;
}
