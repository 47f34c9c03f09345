// SPDX-License-Identifier: GPL-2.0
/*
 * grow.c - struct pages are set up only when their memory is needed
 *
 * Theory of operation
 * -------------------
 * Linux has a struct page of 56 bytes for each page, and initializes all of them at boot: 14 MiB and some
 * milliseconds for each GiB, of which most nodes use little. The host allocates a page of the region when it is
 * first touched. So struct pages of unused memory are not touched: setup_arch() initializes those of the first
 * pages, and the others are deferred. When free memory falls below a watermark, the allocator asks for more, before
 * it reclaims or fails, and gets the next block of the largest order.
 *
 * Deferred memory always counts as memory of the node, and as free, so tables and limits have their normal sizes.
 * max_mapnr is where it begins: none of its pfns is valid, and code that walks all pages skips them.
 *
 * Linux can defer the same with DEFERRED_STRUCT_PAGE_INIT, but only during boot and with SPARSEMEM. Its two hooks
 * are used here (patches/0005).
 */
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/spinlock.h>
#include <linux/vmstat.h>
#include <asm/ring3_grow.h>
#include <asm/sections.h>

/* Bytes: what a node needs to boot and for a few programs, without struct pages. */
#define GROW_FIRST	(12UL << 20)

unsigned long ring3_grown __read_mostly;
static DEFINE_SPINLOCK(grow_lock);

/* Before free_area_init(): decides which struct pages are initialized, and where tables are allocated. */
void __init ring3_grow_reserve(void)
{
	unsigned long first = __pa(_end) + max_pfn * sizeof(struct page) + GROW_FIRST;

	/* KASAN poisons freed memory only when none is deferred any more. */
	first = IS_ENABLED(CONFIG_KASAN) ? max_pfn : ALIGN(PFN_UP(first), MAX_ORDER_NR_PAGES);
	ring3_grown = min(first, max_pfn);
	max_mapnr = ring3_grown;
	/* Allocated from the top they would be in deferred memory. */
	memblock_set_bottom_up(true);
}

/*
 * After free_area_init(): frees all memory but the deferred part. That still counts everywhere except in the zone's
 * own free pages, which the allocator uses. Limits are derived from most of these counts: sockets' memory, the
 * number of tasks (memblock) and of open files (free pages).
 */
void __init ring3_grow_account(void)
{
	struct zone *zone = NODE_DATA(0)->node_zones + ZONE_NORMAL;
	unsigned long pages = max_pfn - ring3_grown;

	memblock_remove(PFN_PHYS(ring3_grown), PFN_PHYS(pages));
	memblock_free_all();
	memblock_add(PFN_PHYS(ring3_grown), PFN_PHYS(pages));
	atomic_long_add(pages, &zone->managed_pages);
	atomic_long_add(pages, &vm_zone_stat[NR_FREE_PAGES]);
	totalram_pages_add(pages);
}

static void grow_init_page(struct page *page, unsigned long pfn, struct zone *zone)
{
	mm_zero_struct_page(page);
	set_page_links(page, zone_idx(zone), zone_to_nid(zone), pfn);
	atomic_set(&page->_mapcount, -1);
	page_cpupid_reset_last(page);
	page_kasan_tag_reset(page);
	INIT_LIST_HEAD(&page->lru);
}

/* Called by the allocator, in any context, but without the zone's lock. */
bool ring3_grow(struct zone *zone)
{
	unsigned long flags, pfn, from, n, i;

	spin_lock_irqsave(&grow_lock, flags);
	pfn = ring3_grown;
	n = min(MAX_ORDER_NR_PAGES, max_pfn - pfn);
	from = virt_to_pfn(pfn_to_page(pfn));
	ring3_populate(from, virt_to_pfn((void *)pfn_to_page(pfn + n) - 1) + 1 - from);
	for (i = pfn; i < pfn + n; i++)
		grow_init_page(pfn_to_page(i), i, zone);
	ring3_grown = pfn + n;
	max_mapnr = ring3_grown;
	atomic_long_sub(n, &vm_zone_stat[NR_FREE_PAGES]);
	spin_unlock_irqrestore(&grow_lock, flags);

	/* pfn begins a block of the largest order; the last block may be smaller. */
	for (i = 0; i < n; ) {
		unsigned int order = min(MAX_PAGE_ORDER, ilog2(n - i));

		init_page_count(pfn_to_page(pfn + i));
		__free_pages(pfn_to_page(pfn + i), order);
		i += 1UL << order;
	}
	return n;
}
