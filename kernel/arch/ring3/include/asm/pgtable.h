/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PGTABLE_H
#define _ASM_RING3_PGTABLE_H

/* No page tables; only what generic code names without an MMU. */

#include <asm-generic/pgtable-nopud.h>
#include <asm/page.h>

#define TASK_SIZE_USER		0x7ffffffff000UL

#define pgd_none(pgd)		(0)
#define pgd_bad(pgd)		(0)
#define pgd_clear(pgdp)

#define PAGE_NONE		__pgprot(0)
#define PAGE_SHARED		__pgprot(0)
#define PAGE_COPY		__pgprot(0)
#define PAGE_READONLY		__pgprot(0)
#define PAGE_KERNEL		__pgprot(0)

#define swapper_pg_dir		((pgd_t *)0)

extern unsigned char ring3_zero_page[];
#define ZERO_PAGE(vaddr)	virt_to_page(ring3_zero_page)

/* vmalloc() is kmalloc() here: addresses lie anywhere in the region. */
#define VMALLOC_START		0UL
#define VMALLOC_END		0xffffffffffffffffUL
#define KMALLOC_START		0UL
#define KMALLOC_END		0xffffffffffffffffUL

#endif
