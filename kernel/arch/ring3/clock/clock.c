// SPDX-License-Identifier: GPL-2.0
/*
 * clock.c - the node's clock as Linux sees it: clocksource, timer interrupt, delays (DESIGN rule 5)
 *
 * clock.h is the interface to the source of time: the host's clock (host.c), or virtual time (virtual.c).
 */
#include <linux/clockchips.h>
#include <linux/clocksource.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/interrupt.h>
#include <linux/percpu.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/tick.h>
#include <asm/ring3.h>
#include <asm/ring3_time.h>
#include <asm/switch_to.h>
#include "../../../kernel/time/tick-sched.h"
#include "clock.h"

unsigned long long notrace sched_clock(void)
{
	return ring3_clock();
}

void read_persistent_clock64(struct timespec64 *ts)
{
	*ts = ns_to_timespec64(ring3_region.boot_realtime_ns + ring3_clock());
}

/*
 * Programs read the host's CLOCK_MONOTONIC, and pass its times to sockets (SO_TXTIME): the node's monotonic clock
 * starts at the same value.
 */
void __init read_persistent_wall_and_boot_offset(struct timespec64 *wall, struct timespec64 *boot)
{
	u64 since = ring3_clock();

	*wall = ns_to_timespec64(ring3_region.boot_realtime_ns + since);
	*boot = ns_to_timespec64(ring3_region.boot_monotonic_ns + since);
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

/* The event is the tick, and not what comes after it where that is stopped. */
static bool is_tick(const struct clock_event_device *evt)
{
	return !tick_nohz_tick_stopped() &&
	       evt->next_event == hrtimer_get_expires(&tick_get_tick_sched(smp_processor_id())->sched_timer);
}

/* KEEP is not told of ticks. A timer that comes soon after the tick must not wait for KEEP: then the tick is a deadline as any other. */
void ring3_tick_or_timer(void)
{
	struct ring3_cpu *cpu = ring3_this_cpu;

	cpu->tick_new = false;
	if (!cpu->tick || !READ_ONCE(cpu->ticks_served) ||
	    hrtimer_next_event_without(&tick_get_tick_sched(smp_processor_id())->sched_timer) >=
	    (u64)ktime_get() + KEEP_TICKS_NS)
		return;
	host_store(&cpu->tick, false);
	host_fence();
	if (ring3_keep_misses(ring3_this_vcpu))
		WRITE_ONCE(ring3_this_vcpu->polled, READ_ONCE(ring3_this_vcpu->polled) | R3_EXIT_KICK);
}

static int set_next_event(unsigned long delta, struct clock_event_device *evt)
{
	struct ring3_vcpu *vcpu = ring3_this_vcpu;
	struct ring3_cpu *cpu = ring3_this_cpu;
	u64 deadline = ring3_clock() + delta;
	bool tick = is_tick(evt);

	/* KEEP may take a tick for something else, and come for it, but not the other way round. */
	if (!tick)
		WRITE_ONCE(cpu->tick, false);
	host_store(&vcpu->deadline, deadline);
	if (tick)
		host_store(&cpu->tick, true);
	cpu->tick_new = tick;
	host_fence();
	if (ring3_keep_misses(vcpu))
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

	/* Too early, or a second interrupt for one deadline: several threads set the bit. */
	if (ring3_clock() < READ_ONCE(vcpu->deadline))
		return;
	WRITE_ONCE(vcpu->deadline, U64_MAX);
	ring3_clock_sync();
	ring3_wake_now(vcpu);
	/* A task in a long call never reaches host_wait(), where signals are checked. */
	if ((host_load(&tb->word) & RING3_WORD_SIGNAL) && tb->task && r3t_call(tb) != R3_CALL_DONE) {
		r3_word_clear(&tb->word, RING3_WORD_SIGNAL);
		set_notify_signal((struct task_struct *)tb->task);
	}
	if (r3t_call(tb) == R3_CALL_DONE)
		ring3_this_cpu->home_wanted = true;
	/* The driver's own task waits for a copy that it makes when it parks: outside.c. */
	if ((host_load(&vcpu->owner) & RING3_OWNER_WAITERS) ||
	    r3t_call(tb) == R3_CALL_DONE || host_load(&r3t_copy(tb)))
		WRITE_ONCE(*ring3_yield_word(), 1);
	evt->event_handler(evt);
}

/* KEEP raises the interrupt, if it has a CPU. While a program computes and makes calls, nothing else does. */
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
