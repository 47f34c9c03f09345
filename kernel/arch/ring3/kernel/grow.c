// SPDX-License-Identifier: GPL-2.0
/*
 * grow.c - memory that nobody has asked for yet
 *
 * Theory of operation
 * -------------------
 * Linux has a struct page of 56 bytes for each page, and sets all of them up when it boots:
 * 14 MiB and some milliseconds for each GiB, of which most nodes use little. The host gives a page
 * of the region's memory when it is touched first. So struct pages of what nobody has asked for
 * are not touched: setup_arch() has those of the first pages set up, and the others wait.
 * The allocator asks for more when what is free falls below a watermark, before it reclaims
 * anything or fails, and gets the next largest block.
 *
 * What waits counts as the node's memory, and as free, all the time, so that tables and limits have
 * the size that they would have. max_mapnr is where it begins, so no pfn of it is valid, and who
 * walks all pages leaves them alone.
 *
 * Linux can put off the same with DEFERRED_STRUCT_PAGE_INIT, for the time of the boot, and only
 * with SPARSEMEM. Its two hooks are used (patches/0005).
 */
#include <linux/init.h>
#include <linux/memblock.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/spinlock.h>
#include <linux/vmstat.h>
#include <asm/ring3_grow.h>
#include <asm/sections.h>

/* Bytes: what a node takes to boot, the struct pages apart, and then a few programs. */
#define GROW_FIRST	(12UL << 20)

unsigned long ring3_grown __read_mostly;
static DEFINE_SPINLOCK(grow_lock);

/* Before free_area_init(): which struct pages are set up, and where tables lie. */
void __init ring3_grow_reserve(void)
{
	unsigned long first = __pa(_end) + max_pfn * sizeof(struct page) + GROW_FIRST;

	/* KASAN poisons what is freed only when nothing waits any more. */
	first = IS_ENABLED(CONFIG_KASAN) ? max_pfn : ALIGN(PFN_UP(first), MAX_ORDER_NR_PAGES);
	ring3_grown = min(first, max_pfn);
	max_mapnr = ring3_grown;
	/* From the top they would lie in what waits. */
	memblock_set_bottom_up(true);
}

/*
 * After it: frees all but what waits, which yet counts everywhere but in the zone's own free
 * pages, by which the allocator goes. Limits are derived from most of these: sockets' memory, the
 * numbers of tasks (memblock) and of open files (free pages).
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

/* From the allocator: any context, but not with the zone's lock. */
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

	/* pfn is that of a largest block; the last one may be smaller. */
	for (i = 0; i < n; ) {
		unsigned int order = min(MAX_PAGE_ORDER, ilog2(n - i));

		init_page_count(pfn_to_page(pfn + i));
		__free_pages(pfn_to_page(pfn + i), order);
		i += 1UL << order;
	}
	return n;
}
