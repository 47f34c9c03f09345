// SPDX-License-Identifier: GPL-2.0
/*
 * populate.c - the node's memory is the keeper's, whoever uses it first
 *
 * Theory of operation
 * -------------------
 * The host gives a page of the region's memory when it is touched first, and charges it to the control group
 * of who does. Kernel code runs in programs: one in a small group would be charged for its node's buffers, and killed
 * for them in kernel code. So no page is handed out by the allocator before the host has given it to the keeper.
 *
 * ring3_resident[] has a bit for each page that the host has given. The allocator looks at the bits of what it hands out
 * (ring3_alloc_page() in asm/ring3_grow.h). Where one is missing the page is populated first, and pages behind it,
 * for those come next: more of them the sooner one is missing again. The keeper's own threads do that by themselves; a program's
 * thread asks KEEP of its vCPU, which does not drive then, and waits for it on the host: 30 to 100 us, once for each
 * batch by which the node grows. If KEEP does not answer in time (it was stopped, or is gone), the program's thread goes on, and
 * the host charges the program for a MiB before KEEP is asked again.
 *
 * What is not the allocator's has the memory that the boot has given it; where the boot left zeroes (trim.c), who
 * needs such a page first is charged for it. That is less than the image and its tables.
 *
 * Some time after the node has grown, pages that are free go back to the host (ring3_trim_free()), and their bits are cleared.
 *
 * In virtual time a node may have thousands of programs, each of which maps all of the node's memory, and each page that one of them
 * touches first is a page fault of its own. So there the host is asked for huge pages (MADV_COLLAPSE, which no setting of
 * the host's denies), and free memory does not go back: that would split them.
 */
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <asm/ring3.h>
#include <asm/ring3_grow.h>
#include <asm/ring3_host.h>
#include "../vcpu/vcpu.h"

#define BATCH_MIN	16UL			/* pages */
#define BATCH_MAX	1024UL
#define BATCH_SOON_NS	(20 * NSEC_PER_MSEC)	/* the next one within that: a larger batch */
#define ANSWER_NS	(100 * NSEC_PER_MSEC)	/* of a KEEP that has a CPU now and then */
#define UNASKED		256UL			/* pages for which one that did not answer is not asked again */
#define TRIM_AFTER	(20 * HZ)

unsigned long ring3_resident[RING3_REGION_MAX / PAGE_SIZE / BITS_PER_LONG];

/* What a vCPU asks of its KEEP: first page and number of pages, in one word. */
static struct request {
	u64 range;
	u32 asked, done;	/* done: futex */
} requests[NR_CPUS];

#define RANGE_PAGES_BITS	24

static bool ready;		/* before that all memory is the boot's, in the keeper */
static DEFINE_RAW_SPINLOCK(lock);
static unsigned long batch = BATCH_MIN;
static unsigned long unasked;
static u64 last;

static struct request *request_of(struct ring3_vcpu *vcpu)
{
	return &requests[vcpu_cpu(vcpu) - ring3_cpus];
}

static void populate_here(unsigned long pfn, unsigned long pages)
{
	if (IS_ENABLED(CONFIG_RING3_SIM))
		ring3_host_populate_huge(pfn_to_virt(pfn), pages * PAGE_SIZE);
	else
		ring3_host_populate(pfn_to_virt(pfn), pages * PAGE_SIZE);
}

/* The host's huge pages of 2 MiB lie where the region's do: a region begins at a multiple of that. */
static unsigned long whole_huge(unsigned long *pfn, unsigned long end)
{
	if (!IS_ENABLED(CONFIG_RING3_SIM))
		return end;
	*pfn = round_down(*pfn, RING3_HUGE / PAGE_SIZE);
	return min(round_up(end, RING3_HUGE / PAGE_SIZE), max_pfn);
}

/* KEEP, on its host stack. */
void ring3_populate_serve(struct ring3_vcpu *vcpu)
{
	struct request *r = request_of(vcpu);
	u32 asked = host_load(&r->asked);
	u64 range = READ_ONCE(r->range);

	if (likely(asked == r->done))
		return;
	populate_here(range >> RANGE_PAGES_BITS, range & ((1UL << RANGE_PAGES_BITS) - 1));
	host_store(&r->done, asked);
	ring3_host_futex_wake(&r->done, 1);
}

static void populate_by_keep(unsigned long pfn, unsigned long pages)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	struct request *r = request_of(vcpu);
	u64 until = ring3_clock() + ANSWER_NS, now;
	u32 asked = r->asked + 1, done;

	WRITE_ONCE(r->range, (u64)pfn << RANGE_PAGES_BITS | pages);
	host_store(&r->asked, asked);
	ring3_kick(vcpu);
	while ((done = host_load(&r->done)) != asked) {
		now = ring3_clock();
		if (now >= until) {
			unasked = UNASKED;
			return;
		}
		ring3_host_futex_wait(&r->done, done, until - now);
	}
}

static void trim_later(struct irq_work *work);
static DEFINE_IRQ_WORK(trim_soon, trim_later);
static void trim(struct work_struct *work);
static DECLARE_DELAYED_WORK(trim_work, trim);

/* From the allocator, in any context; no pages of it are resident yet, or some are not. */
void ring3_populate(unsigned long pfn, unsigned long pages)
{
	unsigned long flags, end, i;
	u64 now;

	if (!READ_ONCE(ready))
		return;
	raw_spin_lock_irqsave(&lock, flags);
	now = ring3_clock();
	batch = unasked ? 0 : now - last < BATCH_SOON_NS ? clamp(2 * batch, BATCH_MIN, BATCH_MAX) : BATCH_MIN;
	end = min(pfn + max(pages, batch), max(pfn + pages, ring3_grown));
	/* What others have already is not asked for again. */
	for (i = pfn + pages; i < end && !test_bit(i, ring3_resident); i++)
		;
	end = whole_huge(&pfn, i);
	if (ring3_driver->proc == (unsigned long)&ring3_region.init_proc)
		populate_here(pfn, end - pfn);
	else if (unasked)
		unasked -= min(unasked, end - pfn);
	else
		populate_by_keep(pfn, end - pfn);
	for (i = pfn; i < end; i++)
		set_bit(i, ring3_resident);
	last = ring3_clock();
	raw_spin_unlock_irqrestore(&lock, flags);
	/* Whoever allocates may hold the locks of timers and work. */
	irq_work_queue(&trim_soon);
}

/* The boot is over: the bits say what it has touched. */
void ring3_populate_start(void)
{
	WRITE_ONCE(ready, true);
}

static void trim_later(struct irq_work *work)
{
	if (!IS_ENABLED(CONFIG_RING3_SIM))
		schedule_delayed_work(&trim_work, TRIM_AFTER);
}

/* Later if the node still grows. What it needs again after that is asked for again, and makes this come again. */
static void trim(struct work_struct *work)
{
	if (ring3_clock() - READ_ONCE(last) < (u64)TRIM_AFTER / 4 * (NSEC_PER_SEC / HZ))
		schedule_delayed_work(&trim_work, TRIM_AFTER);
	else
		ring3_trim_free();
}
