// SPDX-License-Identifier: GPL-2.0
/*
 * sim_cpu.c - the processor that programs see in virtual time
 *
 * Libraries choose code by the processor's features: two machines would run different code, with other roundings and
 * other addresses. So all programs see an x86-64-v2: no AVX, no FMA, no rdrand. The auxiliary vector always says so. The
 * instruction `cpuid' says so if the host lets it fault (ARCH_SET_CPUID), and at the sites that cpuid.c has rewritten. An
 * instruction that a program executes without asking is not hidden.
 */
#include "internal.h"
#include <linux/auxvec.h>

#ifndef ARCH_SET_CPUID
#define ARCH_SET_CPUID	0x1012
#endif
#define AT_RSEQ_SIZE	27	/* AT_RSEQ_FEATURE_SIZE; newer than some headers */
#define AT_RSEQ_ALIGNED	28	/* AT_RSEQ_ALIGN */
#define AT_HWCAP3_	29
#define AT_HWCAP4_	30
#define AT_MINSIGSTKSZ_	51
#define SIGSTACK_BYTES	4096	/* more than a frame with AVX-512 takes; with AMX it is 11 KiB */

#define FEATURES_EDX	0x07888111U	/* fpu tsc cx8 cmov clflush mmx fxsr sse sse2 */
#define FEATURES_ECX	0x00982201U	/* pni ssse3 cx16 sse4_1 sse4_2 popcnt */
#define EXTENDED_EDX	0x20100800U	/* syscall nx lm */
#define EXTENDED_ECX	0x00000001U	/* lahf_lm */
#define MODEL		0x000106a5U	/* family 6, model 26, stepping 5: the first of them */
#define LEAF_LAST	7
#define EXTENDED_LAST	0x80000008U

struct leaf {
	u32 leaf, subleaf;
	u32 regs[4];
};

/* Caches of 32 KiB, 256 KiB and 8 MiB of one CPU; a cycle counter that never stops. Others are 0. */
static const struct leaf leaves[] = {
	{ 0, 0, { LEAF_LAST, 0x756e6547, 0x6c65746e, 0x49656e69 } },		/* GenuineIntel */
	{ 1, 0, { MODEL, 0x00010800, FEATURES_ECX, FEATURES_EDX } },
	{ 2, 0, { 0x55035a01, 0x00f0b2e4, 0, 0x09ca212c } },
	{ 4, 0, { 0x121, 0x01c0003f, 0x3f, 0 } },
	{ 4, 1, { 0x122, 0x00c0003f, 0x7f, 0 } },
	{ 4, 2, { 0x143, 0x01c0003f, 0x1ff, 0 } },
	{ 4, 3, { 0x163, 0x03c0003f, 0x1fff, 2 } },
	{ 0x80000000, 0, { EXTENDED_LAST, 0, 0, 0 } },
	{ 0x80000001, 0, { 0, 0, EXTENDED_ECX, EXTENDED_EDX } },
	{ 0x80000002, 0, { 0x676e6972, 0x43762033, 0x5550, 0 } },		/* ring3 vCPU */
	{ 0x80000006, 0, { 0, 0, 0x01006040, 0 } },
	{ 0x80000007, 0, { 0, 0, 0, 0x100 } },
	{ 0x80000008, 0, { 0x3030, 0, 0, 0 } },
};

static bool faults;		/* the instruction, in this process */

bool sim_cpu_hidden(void)
{
	return gate.sim && !gate.region->cpu_of_host;
}

static bool has_subleaf(u32 leaf)
{
	return leaf == 4 || leaf == 7 || leaf == 0xb || leaf == 0xd;
}

/* The answer to a `cpuid'. */
void sim_cpuid(u32 leaf, u32 subleaf, u32 regs[4])
{
	u32 i;

	memset(regs, 0, 4 * sizeof(regs[0]));
	for (i = 0; i < ARRAY_SIZE(leaves); i++)
		if (leaves[i].leaf == leaf && (!has_subleaf(leaf) || leaves[i].subleaf == subleaf))
			memcpy(regs, leaves[i].regs, sizeof(leaves[i].regs));
}

/* Called before the program's first instruction. Threads and children inherit the faulting, and an exec ends it. */
void sim_cpu_start(void)
{
	if (sim_cpu_hidden())
		faults = !host_syscall2(__NR_arch_prctl, ARCH_SET_CPUID, 0);
}

/* An instruction has faulted, in the program or in the gate. True: it was a `cpuid', and is answered. */
bool sim_cpu_fault(struct sigcontext *sc, const u8 insn[2])
{
	u32 regs[4];

	if (!faults || insn[0] != 0x0f || insn[1] != 0xa2)
		return false;
	sim_cpuid(sc->rax, sc->rcx, regs);
	sc->rax = regs[0];
	sc->rbx = regs[1];
	sc->rcx = regs[2];
	sc->rdx = regs[3];
	sc->rip += 2;
	return true;
}

/* An entry of the auxiliary vector. False: the program gets none of that kind. */
bool sim_cpu_aux(u64 kind, u64 *value)
{
	switch (kind) {
	case AT_RSEQ_SIZE:		/* rseq would tell the host's CPU */
	case AT_RSEQ_ALIGNED:
		return false;
	}
	if (!sim_cpu_hidden())
		return true;
	switch (kind) {
	case AT_HWCAP:
		*value = FEATURES_EDX;
		break;
	case AT_HWCAP2:
		*value = 0;
		break;
	case AT_MINSIGSTKSZ_:
		*value = (*value + SIGSTACK_BYTES - 1) / SIGSTACK_BYTES * SIGSTACK_BYTES;
		break;
	case AT_HWCAP3_:
	case AT_HWCAP4_:
		return false;
	}
	return true;
}
