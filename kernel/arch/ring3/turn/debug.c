// SPDX-License-Identifier: GPL-2.0
/*
 * debug.c - breakpoints in kernel code, for `ring3 sim --gdb`
 *
 * Theory of operation
 * -------------------
 * The text is one shared mapping of all processes, and the keeper writes breakpoints into it (ring3/sim/src/gdb.rs). Whichever
 * thread comes to one gets SIGTRAP. The handler of its gate, or of the keeper, calls ring3_fixup() with TURN_TRAP in the
 * address, and so comes here. The thread leaves its registers in turn_debug and waits until the keeper says that it
 * may go on; the registers may have changed. It has the turn meanwhile, so that nobody else runs and time stands still.
 *
 * The keeper finds turn_debug by its symbol. Both sides look at `state' every NAP_NS: nothing here has to be fast.
 *
 * A trap in what a trap calls would have no end. So turn_trap() calls turn_host_syscall() only, and the keeper refuses
 * breakpoints in both and in ring3_fixup() (SPARED in gdb.rs).
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/skbuff.h>
#include <linux/stddef.h>
#include <linux/time64.h>
#include <linux/uio.h>
#include <asm/ring3.h>
#include <asm/sections.h>
#include <asm/unistd.h>
#include <net/net_namespace.h>
#include <net/sock.h>
#include "../vcpu/internal.h"
#include "turn.h"

void __noreturn ring3_abandon(void);

#define NAP_NS		(100 * NSEC_PER_USEC)	/* of real time */
#define REGS		18		/* of struct sigcontext: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, eflags */
#define REG_RIP		16
#define REG_FLAGS	17
#define FLAG_TRAP	(1UL << 8)

enum { DEBUG_OFF, DEBUG_RUNS, DEBUG_TAKEN, DEBUG_STOPPED };
#define DEBUG_STATE_BITS	2	/* DEBUG_TAKEN has the thread's tid above them */
#define DEBUG_MASK		((1u << DEBUG_STATE_BITS) - 1)

struct turn_debug {
	u32 state;		/* DEBUG_RUNS to DEBUG_TAKEN to DEBUG_STOPPED: a thread; DEBUG_OFF, and DEBUG_STOPPED to DEBUG_RUNS: the keeper */
	s32 pid, tid;
	u32 steps;		/* the thread is to make one step. W: the keeper */
	u64 regs[REGS];
};

struct turn_debug turn_debug;

/* For the functions of ring3/sim/src/gdb.py, in its order: the image's debug information knows few structures. */
const u32 turn_offsets[] = {
	offsetof(struct sk_buff, dev),
	offsetof(struct sk_buff, sk),
	offsetof(struct net_device, nd_net),
	offsetof(struct net_device, name),
	offsetof(struct sock, __sk_common.skc_net),
	offsetof(struct task_struct, nsproxy),
	offsetof(struct task_struct, comm),
	offsetof(struct nsproxy, net_ns),
	offsetof(struct net, ns.inum),
	offsetof(struct net, list),
};

/* No function that a breakpoint may be in. */
static void copy(u64 *to, const u64 *from)
{
	u32 i;

	for (i = 0; i < REGS; i++)
		WRITE_ONCE(to[i], READ_ONCE(from[i]));
}

noinline long turn_host_syscall(long nr, long a0, long a1, long a2, long a3, long a4)
{
	register long r10 asm("r10") = a3;
	register long r8 asm("r8") = a4;
	register long r9 asm("r9") = 0;
	long ret;

	asm volatile("syscall"
		     : "=a" (ret)
		     : "a" (nr), "D" (a0), "S" (a1), "d" (a2), "r" (r10), "r" (r8), "r" (r9)
		     : "rcx", "r11", "memory");
	return ret;
}

static void nap(void)
{
	struct __kernel_timespec ts = { .tv_nsec = NAP_NS };

	turn_host_syscall(__NR_nanosleep, (long)&ts, 0, 0, 0, 0);
}

/* Or its process, when the parent has not waited for it: then its memory is gone, and its number is not. */
static bool is_gone(s32 tid)
{
	u32 state;
	struct iovec to = { &state, sizeof(state) }, from = { &turn_debug.state, sizeof(state) };

	return turn_host_syscall(__NR_process_vm_readv, tid, (long)&to, 1, (long)&from, 1) == -ESRCH;
}

static bool take(s32 tid)
{
	u32 state = host_load(&turn_debug.state);

	if ((state & DEBUG_MASK) == DEBUG_TAKEN && is_gone(state >> DEBUG_STATE_BITS))
		return host_cas(&turn_debug.state, state, DEBUG_TAKEN | (u32)tid << DEBUG_STATE_BITS);
	return host_cas(&turn_debug.state, DEBUG_RUNS, DEBUG_TAKEN | (u32)tid << DEBUG_STATE_BITS);
}

static bool is_text(u64 rip)
{
	return rip >= (u64)_stext && rip <= (u64)_etext;
}

static bool is_ours(u64 rip, s32 tid)
{
	return host_load(&turn_debug.state) != DEBUG_OFF && (is_text(rip) || (turn_debug.steps && turn_debug.tid == tid));
}

/* In a signal handler, on a stack of its own. 0: no trap of the debugger's. */
unsigned long turn_trap(u64 rip, u64 *regs)
{
	s32 tid = turn_host_syscall(__NR_gettid, 0, 0, 0, 0, 0);

	if (!is_ours(rip, tid))
		return 0;
	/* KEEP may come to one while another thread is stopped. */
	while (!take(tid)) {
		if (host_load(&turn_debug.state) == DEBUG_OFF) {
			regs[REG_RIP] = rip - 1;	/* where the breakpoint was */
			return 1;
		}
		if (ring3_poisoned()) {
			regs[REG_RIP] = (u64)ring3_abandon;
			return 1;
		}
		nap();
	}
	turn_debug.pid = turn_host_syscall(__NR_getpid, 0, 0, 0, 0, 0);
	turn_debug.tid = tid;
	copy(turn_debug.regs, regs);
	turn_debug.regs[REG_FLAGS] &= ~FLAG_TRAP;
	host_store(&turn_debug.state, DEBUG_STOPPED);
	while (host_load(&turn_debug.state) == DEBUG_STOPPED)
		nap();
	copy(regs, turn_debug.regs);
	if (turn_debug.steps)
		regs[REG_FLAGS] |= FLAG_TRAP;
	return regs[REG_RIP] ? : 1;
}
