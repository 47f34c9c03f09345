// SPDX-License-Identifier: GPL-2.0
/* head.c - the image relocates itself, once per node, to the address of its slot */
#include <linux/elf.h>
#include <linux/init.h>
#include <linux/sched.h>
#include <linux/stringify.h>
#include <linux/utsname.h>
#include <generated/compile.h>
#include <generated/utsrelease.h>
#include <asm/ring3.h>

#ifdef CONFIG_SMP
#define FLAVOUR	"smp"
#elif defined(CONFIG_RING3_SIM)
#define FLAVOUR	"sim"
#else
#define FLAVOUR	"up"
#endif
#ifdef RING3_PROFILED			/* the profile's sum, from kernel/build */
#define OPTIMIZED	" profiled " __stringify(RING3_PROFILED)
#else
#define OPTIMIZED	""
#endif

extern const Elf64_Rela __rela_start[], __rela_end[];

const char ring3_version[sizeof(ring3_region.version)] __used __section(".ring3_version") =
	UTS_RELEASE " " FLAVOUR OPTIMIZED;

asmlinkage void ring3_relocate(void);
asmlinkage void ring3_relocate(void)
{
	unsigned long base = (unsigned long)&ring3_region;
	const Elf64_Rela *r;

	for (r = __rela_start; r < __rela_end; r++) {
		/* -fPIE and hidden symbols produce no other relocations. */
		if (ELF64_R_TYPE(r->r_info) != R_X86_64_RELATIVE)
			__builtin_trap();
		*(u64 *)(base + r->r_offset) = base + r->r_addend;
	}
}
