// SPDX-License-Identifier: GPL-2.0
/*
 * host.c - the clock that follows the host's
 *
 * Nanoseconds since the node was loaded: the TSC, scaled by the rate that the keeper measured, or the host's clock
 * if the TSC can't be trusted.
 */
#include <linux/errno.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/prctl.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <asm/ring3.h>
#include <asm/timex.h>
#include <asm/unistd.h>
#include "../vcpu/tuning.h"
#include "clock.h"

#define USUAL_SLACK_NS		50000UL		/* Linux's default timer slack */
#define LATE_NS			1000000LL	/* a time-out that is so late, or */
#define EARLY_NS		50000LL		/* so early: have the clocks diverged? */

/*
 * ns = base + ((tsc - at) * mult >> 32). The keeper's first measurement is short, since boot is short; the rate is
 * refined while the node runs. Threads without the vCPU read the conversion, too. So a new one is written to the
 * other slot, and then counted. A reader that is stopped until the next but one is written sees that the count has
 * changed, and reads again.
 */
static struct conversion {
	u64 at, base, mult;
} conversions[2];
static u32 conversion_count;

static struct conversion *conversion(u32 count)
{
	return &conversions[count % ARRAY_SIZE(conversions)];
}

u64 ring3_host_clock(int id)
{
	struct __kernel_timespec ts;

	ring3_host_syscall(__NR_clock_gettime, id, (long)&ts, 0, 0, 0, 0);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

u64 ring3_clock(void)
{
	const struct conversion *c;
	u64 at, base, mult;
	u32 count;

	do {
		count = host_load(&conversion_count);
		c = conversion(count);
		at = host_load(&c->at);
		base = host_load(&c->base);
		mult = host_load(&c->mult);
	} while (unlikely(host_load(&conversion_count) != count));

	if (likely(mult))
		return base + mul_u64_u64_shr(get_cycles() - at, mult, 32);
	if (ring3_region.tsc_khz) {
		conversions[0].at = ring3_region.boot_tsc;
		host_store(&conversions[0].mult, div64_u64((u64)NSEC_PER_MSEC << 32, ring3_region.tsc_khz));
		return ring3_clock();
	}
	return ring3_host_clock(1 /* CLOCK_MONOTONIC */) - ring3_region.boot_monotonic_ns;
}

/*
 * The TSC's rate relative to the host's clock, from two readings as far apart as possible. A host slews its clock
 * by 1/2000 at most. A larger difference is not a rate: the machine was suspended, or a virtual one paused, so that
 * the host's clock stood still and the TSC did not; or the reading is from a process with a time namespace of its
 * own.
 */
static void refine(u64 tsc, u64 host)
{
	static u64 first_tsc, first_host;
	const struct conversion *old = conversion(conversion_count);
	struct conversion *new = conversion(conversion_count + 1);
	u64 ours;
	s64 off;

	if (!old->mult)
		return;
	if (!first_tsc) {
		first_tsc = tsc;
		first_host = host;
		return;
	}
	ours = mul_u64_u64_shr(tsc - first_tsc, old->mult, 32);
	off = host - first_host - ours;
	if (abs(off) > (ours >> 10) + 100 * NSEC_PER_USEC) {
		first_tsc = tsc;
		first_host = host;
		return;
	}
	if (host - first_host < 20 * NSEC_PER_MSEC)
		return;
	new->at = tsc;
	new->base = old->base + mul_u64_u64_shr(tsc - old->at, old->mult, 32);
	new->mult = mul_u64_u64_div_u64(host - first_host, 1ULL << 32, tsc - first_tsc);
	host_store(&conversion_count, conversion_count + 1);
	if (host - first_host > 100 * (u64)NSEC_PER_SEC) {
		first_tsc = tsc;	/* follow the host's slewing */
		first_host = host;
	}
}

/*
 * Programs read the host's wall clock (vDSO), while time stamps come from the node's. The node's clock is steered
 * towards the host's: set at boot, then corrected at most once a second, and only while the node is active.
 */
#define SYNC_INTERVAL_NS	NSEC_PER_SEC
#define SYNC_EARLY_NS		(30 * NSEC_PER_MSEC)
#define SYNC_TOLERANCE_NS	300
#define SYNC_READINGS		4
#define SYNC_WIDTH_NS		2000	/* two host calls and three reads of the node's clock */

static u64 next_sync;

struct reading {
	u64 tsc, mono;
	s64 off;		/* wall clocks: the host's minus the node's */
	u64 width;		/* cycles: the precision of `off' */
};

static void read_host(struct reading *r)
{
	u64 before, between, after, real, ours;

	before = get_cycles();
	ours = ktime_get_real_ns();
	real = ring3_host_clock(0 /* CLOCK_REALTIME */);
	between = get_cycles();
	r->mono = ring3_host_clock(1 /* CLOCK_MONOTONIC */);
	after = get_cycles();
	r->tsc = between + (after - between) / 2;
	r->width = after - before;
	/* The best estimate is the middle of a reading. */
	r->off = real - (ours + (ktime_get_real_ns() - ours) / 4);
}

/*
 * Also called once by pid 1, before the node is UP. A reading that took long is imprecise (this thread lost its
 * CPU, or its caches were cold): the shortest counts. False: none was short enough.
 */
bool ring3_clock_sync_now(void)
{
	static DEFINE_MUTEX(one_at_a_time);
	struct reading best, r;
	struct timespec64 ts;
	int i;

	guard(mutex)(&one_at_a_time);
	read_host(&best);
	for (i = 0; i < SYNC_READINGS; i++) {
		read_host(&r);
		if (r.width < best.width)
			best = r;
	}
	if (best.off > SYNC_TOLERANCE_NS || best.off < -SYNC_TOLERANCE_NS) {
		ts = ns_to_timespec64(ktime_get_real_ns() + best.off);
		do_settimeofday64(&ts);
	}
	if (mul_u64_u64_shr(best.width, conversion(conversion_count)->mult, 32) > SYNC_WIDTH_NS)
		return false;
	refine(best.tsc, best.mono);
	return true;
}

static void sync_realtime(struct work_struct *work)
{
	ring3_clock_sync_now();
}
static DECLARE_WORK(sync_work, sync_realtime);

/*
 * A node that is idle from the start needs its first readings too: the rate depends on them. Each comes after twice
 * the time since boot, and is as precise.
 */
static void sync_early(struct work_struct *work);
static DECLARE_DELAYED_WORK(early_work, sync_early);

static void sync_early(struct work_struct *work)
{
	static unsigned long after = SYNC_EARLY_NS;

	if (ring3_clock_sync_now())
		after *= 2;
	if (after <= NSEC_PER_SEC)
		schedule_delayed_work(&early_work, nsecs_to_jiffies(after));
}

static int __init sync_init(void)
{
	schedule_delayed_work(&early_work, nsecs_to_jiffies(SYNC_EARLY_NS));
	return 0;
}
late_initcall(sync_init);

void ring3_clock_sync(void)
{
	u64 now = ring3_clock();

	if (now < next_sync)
		return;
	next_sync = now + SYNC_INTERVAL_NS;
	schedule_work(&sync_work);
}

long ring3_clock_wait(struct ring3_waitv *wv, unsigned int n, u64 ns)
{
	/* Read in this process: it may have a time namespace of its own. */
	return ring3_host_waitv(wv, n, ring3_host_clock(1 /* CLOCK_MONOTONIC */) + ns);
}

/* The host's CLOCK_MONOTONIC in the keeper's time namespace, minus the node's clock. 0: as at boot. */
static u64 host_ahead;

long ring3_clock_keep(struct ring3_waitv *wv, unsigned int n, u64 now, u64 at)
{
	long ret = ring3_host_waitv(wv, n, (READ_ONCE(host_ahead) ?: ring3_region.boot_monotonic_ns) + at);
	s64 late;

	/*
	 * A sandbox of the keeper refuses the call: sleeps on one word, and looks at the doorbells from time to
	 * time.
	 */
	if (unlikely(ret == -EPERM || ret == -ENOSYS)) {
		if (n > 1)
			at = min(at, now + KEEP_WATCH_NS);
		ret = ring3_host_futex_wait((u32 *)wv[0].uaddr, wv[0].val, at > now ? at - now : 1);
	}
	if (ret != -ETIMEDOUT)
		return ret;
	/*
	 * The node's clock is continuous. The host's stands still while the machine is suspended, and is slewed. If
	 * this wake-up was early, they have diverged; if it was late, they may have.
	 */
	late = ring3_clock() - at;
	if (late > LATE_NS || late < -EARLY_NS)
		WRITE_ONCE(host_ahead, ring3_host_clock(1 /* CLOCK_MONOTONIC */) - ring3_clock());
	return ret;
}

/*
 * By default the host delays the wake-up of a time-out by up to 50 us, to merge it with others. So a thread asks
 * for an earlier wake-up, and stays awake for the rest: the node's timers are as exact as the host's own. KEEP has
 * no slack. A thread that has asked for more slack gets it.
 */
u64 ring3_clock_slack(void)
{
	long slack = ring3_host_syscall(__NR_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0, 0);

	return slack > 0 && slack <= USUAL_SLACK_NS ? slack : 0;
}
