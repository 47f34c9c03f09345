// SPDX-License-Identifier: GPL-2.0
/*
 * kill.c - SIGKILL to a process of the same node
 *
 * A process that dies inside kernel code poisons its node: nobody knows what it left half
 * done. The host's SIGKILL can't be put off, but one that comes from within the node can be
 * sent when its target is surely not inside: while the sender has the vCPU. The sender
 * takes the word and does not drive, which is harmless even if it dies then, and keeps it
 * until the target is gone. If the vCPU does not get free in time, the signal goes all the same.
 */
#include "policy.h"
#include "internal.h"
#include <linux/futex.h>
#include <linux/poll.h>

#define TURNS		64	/* of TURN_NS: how long the vCPU is waited for */
#define TURN_NS		50000	/* a poller lets go after spin_ns, 50 us as a rule */
#define DEATH_MS	20	/* how long an end may take: memory has to be given back */
#define SIG_KILL	9

static bool in_node(s32 pid)
{
	u32 i;

	if (pid <= 0 || !gate.region)
		return false;
	for (i = 0; i < RING3_PROCS_MAX; i++)
		if (READ_ONCE(gate.region->procs[i].pid) == pid &&
		    READ_ONCE(gate.region->procs[i].state))
			return true;
	return false;
}

static bool vcpu_take(void)
{
	u32 *owner = &gate.region->vcpu[0].owner;
	struct __kernel_timespec turn = { .tv_nsec = TURN_NS };
	u32 free;
	int i;

	for (i = 0; i < TURNS; i++) {
		free = 0;
		if (__atomic_compare_exchange_n(owner, &free, gate_thread()->tid, false,
						__ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return true;
		host_syscall2(__NR_nanosleep, (long)&turn, 0);
	}
	return false;
}

static void vcpu_give(void)
{
	u32 *owner = &gate.region->vcpu[0].owner;

	if (__atomic_exchange_n(owner, 0, __ATOMIC_SEQ_CST) & RING3_OWNER_WAITERS)
		host_syscall3(__NR_futex, (long)owner, FUTEX_WAKE, 1);
}

long do_kill(struct gate_regs *r)
{
	s32 pid = (s32)r->a[0];
	struct pollfd dead = { .events = POLLIN };
	bool taken;
	u64 mask;
	long ret;

	if (r->a[1] != SIG_KILL || !in_node(pid) || pid == host_syscall0(__NR_getpid))
		return gate_host_regs(r);
	dead.fd = host_syscall2(__NR_pidfd_open, pid, 0);
	if (dead.fd < 0)
		return gate_host_regs(r);
	mask = signal_block_all();	/* no handler may enter the node now */
	taken = vcpu_take();
	ret = host_syscall2(__NR_kill, pid, SIG_KILL);
	if (taken) {
		if (!ret)
			host_syscall3(__NR_poll, (long)&dead, 1, DEATH_MS);
		vcpu_give();
	}
	host_syscall1(__NR_close, dead.fd);
	signal_set_mask(mask);
	return ret;
}
