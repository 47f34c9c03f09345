/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_KASAN_H
#define _ASM_RING3_KASAN_H

/*
 * KASAN's shadow is a part of the region: what comes after the image, one byte for eight of the
 * region from its beginning on. So it is mapped wherever the region is, it lies where
 * two linker symbols say, in each node elsewhere, and no page table is needed. The compiler
 * knows no such offset, hence outline instrumentation, and nothing on stacks.
 *
 * The kernel also reads and writes what is not the region's: stacks of host threads, the
 * windows of links, the writable alias of its text. All of that has one byte of
 * shadow, which says that nothing is wrong. The memory of programs is never touched by
 * instrumented code, but by usercopy.S.
 */
#include <linux/compiler.h>
#include <asm/page.h>
#include <asm/sections.h>
#include <ring3/ring3.h>

extern struct ring3_region ring3_region;

#define KASAN_SHADOW_SCALE_SHIFT	3
#define KASAN_SHADOW_START	((unsigned long)_end)
#define KASAN_SHADOW_SIZE	(ring3_region.size >> KASAN_SHADOW_SCALE_SHIFT)
#define KASAN_SHADOW_END	(KASAN_SHADOW_START + KASAN_SHADOW_SIZE)
#define KASAN_SHADOW_OFFSET	(KASAN_SHADOW_START - (PAGE_OFFSET >> KASAN_SHADOW_SCALE_SHIFT))

/* No tables of page tables; linux/kasan.h declares some. */
#define PTRS_PER_PTE	1
#define PTRS_PER_PMD	1

extern const u8 ring3_kasan_outside[];

/* The end of the region is the end of its last object. */
#define addr_has_metadata addr_has_metadata
static __always_inline bool addr_has_metadata(const void *addr)
{
	return true;
}

#define kasan_mem_to_shadow kasan_mem_to_shadow
static __always_inline void *kasan_mem_to_shadow(const void *addr)
{
	unsigned long at = (unsigned long)addr - PAGE_OFFSET;

	if (unlikely(at > ring3_region.size))
		return (void *)ring3_kasan_outside;
	return (void *)(KASAN_SHADOW_START + (at >> KASAN_SHADOW_SCALE_SHIFT));
}

void kasan_init(void);

#endif
