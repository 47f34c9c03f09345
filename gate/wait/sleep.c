// SPDX-License-Identifier: GPL-2.0
/*
 * sleep.c - waits of the host for a length of time, which can be restarted
 *
 * If only a stop, or a signal without a handler, has interrupted such a wait, Linux continues it for the remaining
 * time (ERESTART_RESTARTBLOCK). The gate catches signals that stop, so its handler ends the host's wait: repeating
 * the call would wait for the whole time again. So the gate stores the deadline for restart_syscall. call.c turns
 * -ERESTART_RESTARTBLOCK into that call if no handler of the program runs.
 */
#include "internal.h"
#include <linux/time_types.h>

#define NSEC		1000000000UL
#define SECONDS_MAX	4000000000L	/* no sum overflows below this; a longer wait may start again */
#define MSEC		1000000UL

u64 gate_clock_ns(s32 clock)
{
	struct __kernel_timespec ts = { 0 };

	host_syscall2(__NR_clock_gettime, clock, (long)&ts);
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

long gate_timer(s32 clock, s32 signo, u64 value)
{
	struct {			/* struct sigevent */
		u64 value;
		s32 signo, notify, rest[12];
	} event = { .value = value, .signo = signo, .notify = 0 /* SIGEV_SIGNAL */ };
	s32 id;
	long ret = host_syscall3(__NR_timer_create, clock, (long)&event, (long)&id);

	return ret ? ret : id;
}

long gate_timer_set(s32 id, bool absolute, u64 ns, u64 again_ns)
{
	struct __kernel_itimerspec when = {
		.it_interval = { .tv_sec = again_ns / NSEC, .tv_nsec = again_ns % NSEC },
		.it_value = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC },
	};

	return host_syscall4(__NR_timer_settime, id, absolute ? TIMER_ABSTIME : 0, (long)&when, 0);
}

static bool cut_short(long ret)
{
	return ret == -EINTR || ret == -ERESTARTNOINTR;
}

long gate_restart_later(const struct gate_restart *wait)
{
	gate_tcb()->restart_node = 0;
	gate_tcb()->restart = *wait;
	return -ERESTART_RESTARTBLOCK;
}

static long sleep_on(struct gate_regs *r, const struct gate_restart *wait)
{
	struct __kernel_timespec ts = { .tv_sec = wait->until / NSEC, .tv_nsec = wait->until % NSEC };
	u64 rem = wait->nr == __NR_nanosleep ? r->a[1] : r->a[3], now;
	long ret = gate_host(__NR_clock_nanosleep, wait->clock, TIMER_ABSTIME, (long)&ts, 0, 0, 0);

	if (!cut_short(ret))
		return ret;
	now = gate_clock_ns(wait->clock);
	if (now >= wait->until)
		return 0;
	ts.tv_sec = (wait->until - now) / NSEC;
	ts.tv_nsec = (wait->until - now) % NSEC;
	if (rem && gate_copy_out((void *)rem, &ts, sizeof(ts)))
		return -EFAULT;
	return gate_restart_later(wait);
}

static long poll_on(struct gate_regs *r, const struct gate_restart *wait)
{
	u64 now = gate_clock_ns(wait->clock);
	u64 left = now < wait->until ? (wait->until - now + MSEC - 1) / MSEC : 0;
	long ret = gate_host(__NR_poll, r->a[0], r->a[1], left, 0, 0, 0);

	return cut_short(ret) ? gate_restart_later(wait) : ret;
}

static bool relative(const struct gate_regs *r, s32 *clock, struct __kernel_timespec *ts)
{
	u64 from = r->a[0];

	*clock = CLOCK_MONOTONIC;
	if (r->nr == __NR_clock_nanosleep) {
		/* As on Linux: setting the time of day does not affect this wait. */
		if (r->a[1] & TIMER_ABSTIME)
			return false;
		if ((s32)r->a[0] == CLOCK_BOOTTIME)
			*clock = CLOCK_BOOTTIME;
		else if ((s32)r->a[0] != CLOCK_REALTIME && (s32)r->a[0] != CLOCK_MONOTONIC)
			return false;
		from = r->a[2];
	}
	return !gate_copy_in(ts, (void *)from, sizeof(*ts)) && ts->tv_sec >= 0 && ts->tv_sec < SECONDS_MAX &&
	       (u64)ts->tv_nsec < NSEC;
}

/* Other clocks and bad arguments are left to the host. */
long gate_nanosleep(struct gate_regs *r)
{
	struct gate_restart wait = { .nr = r->nr, .go_on = sleep_on };
	struct __kernel_timespec ts;

	if (!relative(r, &wait.clock, &ts))
		return gate_host_regs(r);
	gate_thread()->gate[WORD_COUNTS + RING3_STAT_PASSED]++;
	wait.until = gate_clock_ns(wait.clock) + ts.tv_sec * NSEC + ts.tv_nsec;
	return sleep_on(r, &wait);
}

/* poll() of descriptors of the host only. */
long gate_poll(struct gate_regs *r)
{
	struct gate_restart wait = { .nr = r->nr, .clock = CLOCK_MONOTONIC, .go_on = poll_on };
	s32 ms = r->a[2];

	if (ms <= 0)
		return gate_host_regs(r);
	gate_thread()->gate[WORD_COUNTS + RING3_STAT_PASSED]++;
	wait.until = gate_clock_ns(wait.clock) + ms * MSEC;
	return poll_on(r, &wait);
}
