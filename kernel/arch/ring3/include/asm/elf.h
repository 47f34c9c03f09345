/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_ELF_H
#define _ASM_RING3_ELF_H

#include <linux/types.h>
#include <asm/ptrace.h>
#include <asm/auxvec.h>

/* No program is ever loaded by the node's kernel; for kernel/ and BTF only. */
typedef unsigned long elf_greg_t;
#define ELF_NGREG	(sizeof(struct pt_regs) / sizeof(elf_greg_t))
typedef elf_greg_t elf_gregset_t[ELF_NGREG];
typedef struct { unsigned int dummy; } elf_fpregset_t;

#define R_X86_64_NONE		0
#define R_X86_64_64		1
#define R_X86_64_RELATIVE	8

#define ELF_CLASS		ELFCLASS64
#define ELF_DATA		ELFDATA2LSB
#define ELF_ARCH		EM_X86_64
#define elf_check_arch(x)	((x)->e_machine == EM_X86_64)
#define ELF_EXEC_PAGESIZE	4096
#define ELF_ET_DYN_BASE		0
#define ELF_PLAT_INIT(regs, load_addr)	do { } while (0)
#define ELF_HWCAP		0
#define ELF_PLATFORM		NULL
#define ELF_CORE_COPY_REGS(pr_reg, regs)	memset(&(pr_reg), 0, sizeof(pr_reg));
#define SET_PERSONALITY(ex)	do { } while (0)

#endif
