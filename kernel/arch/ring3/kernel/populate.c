// SPDX-License-Identifier: GPL-2.0
/*
 * populate.c - the node's memory is charged to the keeper, whichever process touches it first
 *
 * Theory of operation
 * -------------------
 * The host allocates a page of the region when it is first touched, and charges it to the control group of the
 * toucher. Kernel code runs in programs: a program in a small group would be charged for its node's buffers, and
 * killed for them in the middle of kernel code. So the allocator hands out no page before the host has allocated it
 * for the keeper.
 *
 * ring3_resident[] has a bit for each page that the host has allocated. The allocator checks the bits of the pages
 * that it hands out (ring3_alloc_page() in asm/ring3_grow.h). If one is missing, the page and some pages after it
 * are populated, since these are handed out next; the sooner a page is missing again, the more of them. The
 * keeper's threads do that themselves. A program's thread asks KEEP of its vCPU, which does not drive then, and
 * waits for it on the host: 30 to 100 us, once for each batch by which the node grows. If KEEP does not answer in
 * time (it was stopped, or is gone), the thread goes on, and the host charges the program for a MiB before KEEP is
 * asked again.
 *
 * Memory outside of the allocator was touched by the boot. If the boot left zeroes there (trim.c), the first
 * process to touch such a page is charged for it. That is less than the image and its tables.
 *
 * Some time after the node has grown, free pages are returned to the host (ring3_trim_free()), and their bits are
 * cleared.
 *
 * In virtual time a node may have thousands of programs, each of which maps the node's whole memory, and each page
 * that one of them touches first costs a page fault. So the host is asked for huge pages there (MADV_COLLAPSE,
 * which no setting of the host disables), and free memory is not returned: that would split them.
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
#define BATCH_SOON_NS	(20 * NSEC_PER_MSEC)	/* if the next batch is needed sooner: a larger one */
#define ANSWER_NS	(100 * NSEC_PER_MSEC)	/* a KEEP that gets a CPU now and then answers in this time */
#define UNASKED		256UL			/* pages to take without asking again, after KEEP did not answer */
#define TRIM_AFTER	(20 * HZ)

unsigned long ring3_resident[RING3_REGION_MAX / PAGE_SIZE / BITS_PER_LONG];

/* A request of a vCPU to its KEEP: first page and number of pages, in one word. */
static struct request {
	u64 range;
	u32 asked, done;	/* done: futex */
} requests[NR_CPUS];

#define RANGE_PAGES_BITS	24

static bool ready;		/* before that, all memory is touched by the boot, in the keeper */
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

/* Huge pages of 2 MiB are at the same places on both sides: a region begins at a multiple of 2 MiB. */
static unsigned long whole_huge(unsigned long *pfn, unsigned long end)
{
	if (!IS_ENABLED(CONFIG_RING3_SIM))
		return end;
	*pfn = round_down(*pfn, RING3_HUGE / PAGE_SIZE);
	return min(round_up(end, RING3_HUGE / PAGE_SIZE), max_pfn);
}

/* Called by KEEP, on its host stack. */
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

/* Called by the allocator, in any context. Some or all of the pages are not resident yet. */
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
	/* Pages that are resident already are not asked for again. */
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
	/* The allocating code may hold the locks of timers and work queues. */
	irq_work_queue(&trim_soon);
}

/* The boot is over: sets the bits of the pages that it has touched. */
void ring3_populate_start(void)
{
	WRITE_ONCE(ready, true);
}

static void trim_later(struct irq_work *work)
{
	if (!IS_ENABLED(CONFIG_RING3_SIM))
		schedule_delayed_work(&trim_work, TRIM_AFTER);
}

/*
 * Trims free memory; later, if the node still grows. Pages that are needed again later are populated again, and
 * lead to another trim.
 */
static void trim(struct work_struct *work)
{
	if (ring3_clock() - READ_ONCE(last) < (u64)TRIM_AFTER / 4 * (NSEC_PER_SEC / HZ))
		schedule_delayed_work(&trim_work, TRIM_AFTER);
	else
		ring3_trim_free();
}
