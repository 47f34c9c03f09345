/* SPDX-License-Identifier: GPL-2.0 */
/*
 * ring3_cpuid.h - what the gates of a node remember of the instruction `cpuid`
 *
 * Under a hypervisor it is an exit, of 4 to 70 us, and the C library of each program that starts
 * makes some forty of them: half of what the start of a small program takes. gate/cpuid.c says
 * which of them are answered from here.
 *
 * All of it is the gates' own; the image only has room for it in the region's head.
 */
#ifndef RING3_CPUID_H
#define RING3_CPUID_H

/* ring3_cpuid.use */
#define RING3_CPUID_UNKNOWN	0u	/* the next program that starts measures */
#define RING3_CPUID_REMEMBER	1u	/* it is slow here */
#define RING3_CPUID_HOST	2u	/* it is not, or is not to be touched */

#define RING3_CPUID_ANSWERS	32
#define RING3_CPUID_FILES	64
#define RING3_CPUID_SITES	60

struct ring3_cpuid_answer {
	r3_u32 state;
#define RING3_CPUID_WRITING	1u
#define RING3_CPUID_READY	2u
	r3_u32 leaf, subleaf;	/* eax and ecx before */
	r3_u32 pad;
	r3_u32 regs[4];		/* eax, ebx, ecx, edx after */
};

/* A version of a program's file, and where in its executable segment it has the instruction. */
struct ring3_cpuid_file {
	r3_u64 key;		/* 0: free; 1: being written */
	r3_u32 sites;		/* ~0: nobody has looked yet */
	r3_u32 pad;
	r3_u32 site[RING3_CPUID_SITES];	/* offsets */
};

struct ring3_cpuid {
	r3_a32 use;
	r3_u32 pad[15];
	struct ring3_cpuid_answer answers[RING3_CPUID_ANSWERS];
	struct ring3_cpuid_file files[RING3_CPUID_FILES];
};

#endif /* RING3_CPUID_H */
