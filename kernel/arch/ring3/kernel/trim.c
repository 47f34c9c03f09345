// SPDX-License-Identifier: GPL-2.0
/*
 * trim.c - returns unused memory to the host
 *
 * Theory of operation
 * -------------------
 * The host allocates a page of the region when it is first touched, and a boot touches many that hold nothing of
 * use: kernel stacks and tables are cleared when they are made, and are mostly still zero; memory that was used and
 * freed holds data that will not be read. Both are punched out of the memfd (MADV_REMOVE). A page that is touched
 * again later is zeroed.
 *
 * At the end of the boot no other thread may write meanwhile: this one owns the vCPU, interrupts are off, and the
 * words that host threads write without the vCPU are in the image's data. The current stack is skipped: it grows
 * meanwhile. With several vCPUs the others run already, so only free pages are punched out.
 *
 * After a peak, free pages are returned again (populate.c), under the zone's lock, which keeps them free. Some
 * stay, for the next allocations. None are returned if free pages are checked (KASAN, poisoning).
 */
#include <linux/gfp.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/sched/task_stack.h>
#include <linux/string.h>
#include <asm/ring3.h>
#include <asm/ring3_grow.h>
#include <asm/ring3_host.h>
#include "../vcpu/vcpu.h"

#define WINDOW		MAX_ORDER_NR_PAGES	/* no block of free pages crosses the end of one */
#define HOST_RESIDENT	1			/* bit of mincore(2) */

/* Fewer adjacent pages are not worth a host call. */
#define LEAST		2

/* Free pages that are kept after a peak. */
#define SPARE		512

static u8 resident[WINDOW];

static void drop(unsigned long pfn, unsigned int from, unsigned int to, unsigned int pages)
{
	if (pages < LEAST ||
	    ring3_host_punch(pfn_to_virt(pfn + from), (to - from) * PAGE_SIZE))
		return;
	for (; from < to; from++)
		clear_bit(pfn + from, ring3_resident);
}

static bool is_empty(const void *page)
{
	return (unsigned long)(page - task_stack_page(current)) >= THREAD_SIZE &&
	       !memchr_inv(page, 0, PAGE_SIZE);
}

/* Punches out the free pages except the first `spare', and with `zeroes' also pages in use that are zero. */
static unsigned int trim_window(unsigned long pfn, unsigned int n, unsigned int spare, bool zeroes)
{
	unsigned int i, from = 0, to = 0, pages = 0, free = 0;

	for (i = 0; i < n; i++) {
		struct page *page = pfn_to_page(pfn + i);

		if (!free && PageBuddy(page))
			free = 1U << page_private(page);
		if (!test_bit(pfn + i, ring3_resident)) {
			/* does not end a run of pages */
		} else if (free && spare) {
			spare--;
			drop(pfn, from, to, pages);
			pages = 0;
		} else if (free || (zeroes && is_empty(page_address(page)))) {
			if (!pages++)
				from = i;
			to = i + 1;
		} else {
			drop(pfn, from, to, pages);
			pages = 0;
		}
		free -= !!free;
	}
	drop(pfn, from, to, pages);
	return spare;
}

/* Reads which pages the host has allocated; all, if it does not tell. */
static void look(unsigned long pfn, unsigned int n)
{
	/*
	 * In virtual time the host's answer must not change anything: neither when the node grows nor what is
	 * trimmed later.
	 */
	bool unknown = IS_ENABLED(CONFIG_RING3_SIM) || ring3_host_mincore(pfn_to_virt(pfn), n * PAGE_SIZE, resident);
	unsigned int i;

	for (i = 0; i < n; i++)
		if (unknown || (resident[i] & HOST_RESIDENT))
			set_bit(pfn + i, ring3_resident);
}

static bool free_is_looked_at(void)
{
	return IS_ENABLED(CONFIG_KASAN) || page_poisoning_enabled() || want_init_on_free();
}

static void trim_all(unsigned int spare, bool boot)
{
	struct zone *zone = NODE_DATA(0)->node_zones + ZONE_NORMAL;
	unsigned long pfn = PFN_UP(__pa(mem_map + max_pfn)), flags;
	unsigned int n;

	drain_local_pages(zone);
	for (; pfn < ring3_grown; pfn += n) {
		spin_lock_irqsave(&zone->lock, flags);
		n = min(WINDOW - pfn % WINDOW, ring3_grown - pfn);
		spare = trim_window(pfn, n, spare, boot && !IS_ENABLED(CONFIG_SMP));
		spin_unlock_irqrestore(&zone->lock, flags);
		if (!boot)
			cond_resched();
	}
}

void ring3_trim_free(void)
{
	if (!free_is_looked_at())
		trim_all(SPARE, false);
}

/* Called at the end of the boot, before any program has memory. */
void ring3_trim(void)
{
	unsigned long pfn, flags;
	unsigned int n;

	for (pfn = 0; pfn < ring3_grown; pfn += n) {
		n = min(WINDOW - pfn % WINDOW, ring3_grown - pfn);
		look(pfn, n);
	}
	if (!free_is_looked_at()) {
		local_irq_save(flags);
		trim_all(0, true);
		local_irq_restore(flags);
	}
	ring3_populate_start();
}
