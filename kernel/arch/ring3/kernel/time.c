// SPDX-License-Identifier: GPL-2.0
/*
 * time.c - the node's one source of time (DESIGN rule 5)
 *
 * Nanoseconds since the node was loaded: the TSC scaled by what the keeper
 * measured, or the host's clock where the TSC can't be trusted. Everything
 * (clocksource, sched_clock, the deadline) is in that unit.
 */
#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>
#include <asm/ring3.h>
#include <asm/ring3_time.h>
#include <asm/switch_to.h>
#include <asm/timex.h>
#include <asm/unistd.h>
#include "vcpu.h"

/*
 * ns = base + ((tsc - at) * mult >> 32). The keeper's first measurement is short, boot
 * being short; it is refined while the node runs. Threads without the vCPU read this
 * too, so a new conversion is written beside the old one and then counted. A thread that is stopped
 * meanwhile, until the next but one is written, sees that the count is another and reads again.
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
 * The TSC's rate against the host's clock, from two readings as far apart as there are. A host
 * slews its clock by 1/2000 at most; what is further off is no rate: the machine was suspended or a
 * virtual one paused, for which the host's clock stood and the TSC did not, or the reading
 * is of a process with a time namespace of its own.
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
		first_tsc = tsc;	/* follow the host when it slews */
		first_host = host;
	}
}

unsigned long long notrace sched_clock(void)
{
	return ring3_clock();
}

void read_persistent_clock64(struct timespec64 *ts)
{
	*ts = ns_to_timespec64(ring3_region.boot_realtime_ns + ring3_clock());
}

/* Programs read the host's CLOCK_MONOTONIC, and hand its times to sockets (SO_TXTIME): ours begins there. */
void __init read_persistent_wall_and_boot_offset(struct timespec64 *wall, struct timespec64 *boot)
{
	u64 since = ring3_clock();

	*wall = ns_to_timespec64(ring3_region.boot_realtime_ns + since);
	*boot = ns_to_timespec64(ring3_region.boot_monotonic_ns + since);
}

/*
 * The programs read the host's wall clock (vDSO); time stamps come from ours. Ours
 * is steered to the host's: exactly once at boot, then at most once a second and
 * only while the node has something to do.
 */
#define SYNC_INTERVAL_NS	NSEC_PER_SEC
#define SYNC_EARLY_NS		(30 * NSEC_PER_MSEC)
#define SYNC_TOLERANCE_NS	300
#define SYNC_READINGS		4
#define SYNC_WIDTH_NS		2000	/* two host calls and three looks at our clock */

static u64 next_sync;

struct reading {
	u64 tsc, mono;
	s64 off;		/* of the wall clock: the host's minus ours */
	u64 width;		/* cycles: how exact it is */
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
	/* The middle of a reading is its best guess. */
	r->off = real - (ours + (ktime_get_real_ns() - ours) / 4);
}

/*
 * Also called once by pid 1, before the node is UP. A reading that took long (this
 * thread lost its CPU, or its caches were cold) says little: the shortest counts.
 * False: none was short.
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
 * A node that is idle from the start gets its first looks too: the rate depends on them.
 * Each is twice as far from boot as the last, and as good.
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

static u64 clock_read(struct clocksource *cs)
{
	return ring3_clock();
}

static struct clocksource clock = {
	.name	= "ring3",
	.rating	= 400,
	.read	= clock_read,
	.mask	= CLOCKSOURCE_MASK(64),
	.flags	= CLOCK_SOURCE_IS_CONTINUOUS | CLOCK_SOURCE_VALID_FOR_HRES,
};

static int set_next_event(unsigned long delta, struct clock_event_device *evt)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	u64 deadline = ring3_clock() + delta;

	WRITE_ONCE(vcpu->deadline, deadline);
	host_fence();
	if (deadline < READ_ONCE(ring3_this_cpu->keep_until))
		WRITE_ONCE(vcpu->polled, READ_ONCE(vcpu->polled) | R3_EXIT_KICK);
	return 0;
}

static int set_shutdown(struct clock_event_device *evt)
{
	WRITE_ONCE(ring3_this_vcpu->deadline, U64_MAX);
	return 0;
}

static DEFINE_PER_CPU(struct clock_event_device, clock_events);
static const struct clock_event_device event = {
	.name			= "ring3",
	.features		= CLOCK_EVT_FEAT_ONESHOT,
	.rating			= 400,
	.set_next_event		= set_next_event,
	.set_state_shutdown	= set_shutdown,
	.set_state_oneshot_stopped = set_shutdown,
	.set_state_oneshot	= set_shutdown,
};

void ring3_timer_irq(void)
{
	struct clock_event_device *evt = this_cpu_ptr(&clock_events);
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	struct ring3_thread *tb = ring3_driver;

	/* Early, or twice for one deadline: the bit is set by several. */
	if (ring3_clock() < READ_ONCE(vcpu->deadline))
		return;
	WRITE_ONCE(vcpu->deadline, U64_MAX);
	ring3_clock_sync();
	ring3_wake_now(vcpu);
	/* A call that goes on and on never comes to where signals are looked at (host_wait()). */
	if ((host_load(&tb->word) & RING3_WORD_SIGNAL) && tb->task && r3t_call(tb) != R3_CALL_DONE) {
		host_andnot(&tb->word, RING3_WORD_SIGNAL);
		set_notify_signal((struct task_struct *)tb->task);
	}
	if ((host_load(&vcpu->owner) & RING3_OWNER_WAITERS) ||
	    r3t_call(tb) == R3_CALL_DONE)
		WRITE_ONCE(*ring3_yield_word(), 1);
	evt->event_handler(evt);
}

/* KEEP raises the interrupt, as long as it has a CPU: nothing else does while a program computes, and makes calls. */
void ring3_time_passed(void)
{
	if (ring3_clock() < READ_ONCE(ring3_this_vcpu->deadline) || arch_irqs_disabled())
		return;
	host_or(&ring3_pending, RING3_IRQ_TIMER);
	ring3_irq_run();
}

void ring3_timer_start(void)
{
	struct clock_event_device *evt = this_cpu_ptr(&clock_events);

	WRITE_ONCE(ring3_this_vcpu->deadline, U64_MAX);
	*evt = event;
	evt->cpumask = cpumask_of(smp_processor_id());
	clockevents_config_and_register(evt, NSEC_PER_SEC, 1, U32_MAX);
}

void __init time_init(void)
{
	clocksource_register_hz(&clock, NSEC_PER_SEC);
	ring3_timer_start();
}

void __init calibrate_delay(void)
{
	loops_per_jiffy = 1000000;
}

void __delay(unsigned long loops)
{
	u64 end = ring3_clock() + loops;

	while (ring3_clock() < end)
		cpu_relax();
}

void __udelay(unsigned long usecs)
{
	__delay(usecs * 1000);
}

void __ndelay(unsigned long nsecs)
{
	__delay(nsecs);
}

void __const_udelay(unsigned long xloops)
{
	/* asm-generic/delay.h: xloops = usecs * 2^32 / 1000000 */
	__delay((xloops * 1000000000ULL) >> 32);
}
