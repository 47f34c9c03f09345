// SPDX-License-Identifier: GPL-2.0
/*
 * tsc.c - the time stamp counter, of a program that may not read it
 *
 * PR_SET_TSC with PR_TSC_SIGSEGV holds for the thread, whatever code it runs. The image and the gate read the counter in
 * many places; there it is read for them, in the handler of the fault. The program's own reads get the signal that it
 * asked for.
 */
#include "internal.h"
#include <linux/prctl.h>

static bool is_rdtsc(const u8 *at)
{
	return at[0] == 0x0f && at[1] == 0x31;
}

static bool is_rdtscp(const u8 *at)
{
	return at[0] == 0x0f && at[1] == 0x01 && at[2] == 0xf9;
}

/* A general protection fault in the image or the gate: true if it was this one, and the thread can go on. */
bool tsc_read(struct sigcontext *sc)
{
	const u8 *at = (const u8 *)sc->rip;
	u32 low, high, aux;

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
