// SPDX-License-Identifier: GPL-2.0
/*
 * poison.c - ends a node that can't continue (DESIGN rule 9)
 *
 * Logs the reason and wakes all waiters; from then on each call, waiting or new, fails with EIO.
 */
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/panic_notifier.h>
#include <linux/notifier.h>
#include <asm/ring3.h>
#include "../vcpu/vcpu.h"

void __noreturn ring3_abandon(void);

/* Also called by host threads without the vCPU: uses no kernel function but vsnprintf. */
void ring3_poison(const char *fmt, ...)
{
	struct ring3_vcpu *vcpu;
	struct ring3_thread *tb;
	va_list args;
	u32 old;

	old = host_load(&ring3_region.state);
	if (old >= RING3_POISONED || !host_cas(&ring3_region.state, old, RING3_POISONED))
		return;
	va_start(args, fmt);
	vsnprintf(ring3_region.poison, sizeof(ring3_region.poison), fmt, args);
	va_end(args);

	ring3_host_futex_wake(&ring3_region.state, INT_MAX);
	for_each_vcpu(vcpu) {
		ring3_kick(vcpu);
		ring3_host_futex_wake(&vcpu->owner, INT_MAX);
	}
	for (tb = ring3_threads; tb; tb = (struct ring3_thread *)tb->image_private[R3T_LINK])
		ring3_host_futex_wake(&tb->word, INT_MAX);
}

static int on_panic(struct notifier_block *nb, unsigned long event, void *msg)
{
	ring3_poison("kernel panic: %s", (char *)msg);
	ring3_abandon();
	return NOTIFY_DONE;
}

static struct notifier_block panic_block = {
	.notifier_call	= on_panic,
	.priority	= INT_MIN,
};

void __init ring3_poison_init(void);
void __init ring3_poison_init(void)
{
	atomic_notifier_chain_register(&panic_notifier_list, &panic_block);
}
