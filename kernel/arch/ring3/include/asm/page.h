/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_PAGE_H
#define _ASM_RING3_PAGE_H

#include <linux/const.h>

#define PAGE_SHIFT	12
#define PAGE_SIZE	(_AC(1, UL) << PAGE_SHIFT)
#define PAGE_MASK	(~(PAGE_SIZE - 1))

#ifndef __ASSEMBLY__

#include <linux/types.h>
#include <linux/pfn.h>

/*
 * The region is the node's physical memory: address 0 is its first byte, and
 * it is mapped at the linker symbol, wherever the node's slot is. A symbol
 * rather than a constant, so that one process can hold many nodes.
 */
struct ring3_region;
extern struct ring3_region ring3_region;
#define PAGE_OFFSET	((unsigned long)&ring3_region)

typedef struct { unsigned long pte; } pte_t;
typedef struct { unsigned long pmd; } pmd_t;
typedef struct { unsigned long pgd; } pgd_t;
typedef struct { unsigned long pgprot; } pgprot_t;
typedef struct page *pgtable_t;

#define pte_val(x)	((x).pte)
#define pmd_val(x)	((x).pmd)
#define pgd_val(x)	((x).pgd)
#define pgprot_val(x)	((x).pgprot)
#define __pte(x)	((pte_t) { (x) })
#define __pmd(x)	((pmd_t) { (x) })
#define __pgd(x)	((pgd_t) { (x) })
#define __pgprot(x)	((pgprot_t) { (x) })

#define clear_page(page)			memset((page), 0, PAGE_SIZE)
#define copy_page(to, from)			memcpy((to), (from), PAGE_SIZE)
#define clear_user_page(page, vaddr, pg)	clear_page(page)
#define copy_user_page(to, from, vaddr, pg)	copy_page(to, from)

#define __pa(x)			((unsigned long)(x) - PAGE_OFFSET)
#define __va(x)			((void *)((unsigned long)(x) + PAGE_OFFSET))
#define __pa_symbol(x)		__pa(x)
#define virt_to_pfn(kaddr)	(__pa(kaddr) >> PAGE_SHIFT)
#define pfn_to_virt(pfn)	__va((unsigned long)(pfn) << PAGE_SHIFT)
#define virt_to_page(addr)	pfn_to_page(virt_to_pfn(addr))
#define page_to_virt(page)	pfn_to_virt(page_to_pfn(page))
#define page_to_phys(page)	PFN_PHYS(page_to_pfn(page))
#define phys_to_page(phys)	pfn_to_page(PHYS_PFN(phys))
#define virt_addr_valid(kaddr)	(virt_to_pfn(kaddr) < max_mapnr)

extern unsigned long max_mapnr;

#include <asm-generic/memory_model.h>

#endif /* __ASSEMBLY__ */

#include <asm-generic/getorder.h>

#endif
