// SPDX-License-Identifier: GPL-2.0
/*
 * prctl.c - prctl() and arch_prctl(): requests that would break the gate are refused
 */
#include "internal.h"
#include <linux/prctl.h>

#ifndef ARCH_SHSTK_ENABLE
#define ARCH_SHSTK_ENABLE	0x5001
#endif

/* Gives the task the thread's name on the host: the node's kernel shows it to programs (`nft monitor`). */
void thread_named(const char *name)
{
	image_call2(__NR_prctl, PR_SET_NAME, name);
}

static long set_name(struct gate_regs *r)
{
	long ret = gate_host_regs(r);

	if (!ret)
		thread_named((const char *)r->a[1]);
	return ret;
}

long gate_prctl(struct gate_regs *r)
{
	if (r->a[0] == PR_SET_SYSCALL_USER_DISPATCH) {
		gate_warn("the program asked for Syscall User Dispatch, which ring3 needs itself: refused");
		return -EINVAL;
	}
	if (r->a[0] == PR_SET_NAME)
		return set_name(r);
	if (r->a[0] == PR_SET_SECCOMP)
		return seccomp_prctl(r);
	if (r->a[0] == PR_GET_SECCOMP)
		return seccomp_mode(r);
	if (r->a[0] == PR_SET_PDEATHSIG || r->a[0] == PR_GET_PDEATHSIG)
		return limits_pdeath(r);
	if (gate.sim && r->a[0] == PR_SET_TSC)
		return r->a[1] == PR_TSC_ENABLE ? 0 : -EINVAL;
	if (gate.sim && r->a[0] == PR_GET_TSC) {
		s32 enabled = PR_TSC_ENABLE;

		return gate_copy_out((void *)r->a[1], &enabled, sizeof(enabled)) ? -EFAULT : 0;
	}
	if (cred_prctl_is(r->a[0]))
		return cred_prctl(r);
	return gate_host_regs(r);
}

long gate_arch_prctl(struct gate_regs *r)
{
	if (r->a[0] == ARCH_SET_GS)
		return own_gs_set(r->a[1]);
	if (r->a[0] == ARCH_GET_GS)
		return gate_copy_out((void *)r->a[1], &gate_tcb()->own_gs, sizeof(u64));
	/*
	 * The image switches stacks freely, which a shadow stack forbids. Answers as a processor without shadow
	 * stacks.
	 */
	if (r->a[0] == ARCH_SHSTK_ENABLE)
		return -EOPNOTSUPP;
	if (r->a[0] == ARCH_SET_CPUID && sim_cpu_hidden())
		return r->a[1] ? 0 : -ENODEV;
	if (r->a[0] == ARCH_GET_CPUID && sim_cpu_hidden())
		return 1;
	if (r->a[0] == ARCH_SET_CPUID && !r->a[1])
		cpuid_stop();
	return gate_host_regs(r);
}
