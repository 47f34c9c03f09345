// SPDX-License-Identifier: GPL-2.0
/*
 * tsc.c - the time stamp counter, for threads that may not read it
 *
 * PR_SET_TSC with PR_TSC_SIGSEGV holds for all code of the thread. Image and gate read the counter in many places:
 * for them the fault handler reads it and continues. The program's own reads get the signal that it asked for.
 *
 * In virtual time no program may read it: the handler answers with the node's clock, in ns.
 */
#include "internal.h"
#include <linux/prctl.h>
#include <linux/time_types.h>

static bool is_rdtsc(const u8 *at)
{
	return at[0] == 0x0f && at[1] == 0x31;
}

static bool is_rdtscp(const u8 *at)
{
	return at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9;
}

/* In virtual time, the program must not see how much real time has passed. */
void tsc_start(void)
{
	if (gate.sim && host_syscall2(__NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV))
		gate_warn("the host does not hide its cycle counter from programs; two runs of those that read it differ");
}

/* A general protection fault in the program, in virtual time. True: it was rdtsc or cpuid, and has been answered. */
bool tsc_virtual(struct sigcontext *sc)
{
	struct gate_tcb *tcb = gate_tcb();
	stack_t alt = tcb_call_altstack(tcb);
	struct __kernel_timespec ts = { 0 };
	u8 at[3] = { 0 };
	u64 ns;

	if (gate_copy_in(at, (const void *)sc->rip, 2))
		return false;
	if (sim_cpu_fault(sc, at))
		return true;
	if ((!is_rdtsc(at) && gate_copy_in(at, (const void *)sc->rip, 3)) || (!is_rdtsc(at) && !is_rdtscp(at)))
		return false;
	/*
	 * As in sud_call(): the image's stacks are not the alternate stack, so a fault there would be delivered at
	 * the top of this one.
	 */
	host_syscall2(__NR_sigaltstack, (long)&alt, 0);
	image_call2(__NR_clock_gettime, CLOCK_MONOTONIC, &ts);
	ns = ts.tv_sec * 1000000000ull + ts.tv_nsec;
	if (is_rdtscp(at))
		sc->rcx = 0;
	sc->rip += is_rdtscp(at) ? 3 : 2;
	sc->rax = (u32)ns;
	sc->rdx = ns >> 32;
	return true;
}

/*
 * A general protection fault in the image or the gate. True: it was a read of the counter, and the thread can
 * continue.
 */
bool tsc_read(struct sigcontext *sc)
{
	const u8 *at = (const u8 *)sc->rip;
	u32 low, high, aux;

	if (sim_cpu_fault(sc, at))
		return true;
	if ((!is_rdtsc(at) && !is_rdtscp(at)) ||
	    host_syscall2(__NR_prctl, PR_SET_TSC, PR_TSC_ENABLE))
		return false;
	asm volatile("rdtscp" : "=a" (low), "=d" (high), "=c" (aux));
	host_syscall2(__NR_prctl, PR_SET_TSC, PR_TSC_SIGSEGV);
	if (is_rdtscp(at))
		sc->rcx = aux;
	sc->rip += is_rdtscp(at) ? 3 : 2;
	sc->rax = low;
	sc->rdx = high;
	return true;
}
