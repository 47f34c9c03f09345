// SPDX-License-Identifier: GPL-2.0
/*
 * skew.c - each simulated host's clock of the day
 *
 * Theory of operation
 * -------------------
 * The node has one CLOCK_REALTIME, which is right. A host's is that, and what it is ahead by: an offset, and a rate since an
 * instant. A host is its network namespace, as for everything else that is a host's. What a program reads of the clock of
 * the day, and the absolute times of it that a program waits for, are its host's. Who sets it (clock_settime(), clock_adjtime()
 * and the like) sets the host's: `ring3 sim' does so for a scenario's events, and chrony may. Who does so in the node's first
 * namespace, which is no host's, sets the node's: `ring3 sim' has the day begin when the hosts are there.
 *
 * CLOCK_MONOTONIC, and with it sleeps and time-outs, go at the true rate on all hosts. So do the kernel's own time stamps,
 * of packets and files. A wait for an absolute time that has begun is not looked at again when the clock is set.
 *
 * The calls take the places of Linux's in the table (syscalls.c). timerfd and timer_settime() come by way of
 * timens_ktime_to_host(), where time namespaces would have their say (kernel/patches/sim).
 */
#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/math64.h>
#include <linux/nsproxy.h>
#include <linux/overflow.h>
#include <linux/sched.h>
#include <linux/syscalls.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/timex.h>
#include <linux/uaccess.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "turn.h"

struct skew {
	s64 offset;		/* ns, at `since' */
	s64 rate;		/* parts of 2^-16 of a millionth, as struct timex has them */
	u64 since;		/* of the monotonic clock */
};

#define RATE_ONE	(1000000ll << 16)	/* twice as fast */
#define RATE_MAX	(500ll << 16)		/* as Linux has it */

static unsigned int id;
static bool any;		/* a clock has been set */

static struct skew *of_host(void)
{
	return net_generic(current->nsproxy->net_ns, id);
}

static s64 times(s64 ns, s64 by, s64 of)
{
	u64 product = mul_u64_u64_div_u64(abs(ns), abs(by), of);

	return (ns < 0) != (by < 0) ? -(s64)product : product;
}

static s64 ahead(const struct skew *skew, u64 now)
{
	return skew->offset + times(now - skew->since, skew->rate, RATE_ONE);
}

/* The clock is `to' from now on, and has this rate. */
static long set(struct skew *skew, const struct timespec64 *to, s64 rate)
{
	if (current->nsproxy->net_ns == &init_net && !rate) {
		*skew = (struct skew){};
		return do_settimeofday64(to);
	}
	*skew = (struct skew){ timespec64_to_ns(to) - ktime_get_real_ns(), rate, ktime_get_ns() };
	any = true;
	return 0;
}

static bool is_of_day(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

/* When, by the node's clock, it is `time' by the host's: KTIME_MAX is for ever on both, and 0 is over. */
ktime_t turn_time_to_node(clockid_t clock, ktime_t time)
{
	const struct skew *skew;
	s64 wait, at;

	if (likely(!any) || !is_of_day(clock) || time == KTIME_MAX)
		return time;
	skew = of_host();
	wait = time - (ktime_get_real() + ahead(skew, ktime_get_ns()));
	/* The host's clock may be the faster one. */
	if (check_add_overflow(ktime_get_real(), wait, &at) ||
	    check_sub_overflow(at, times(wait, skew->rate, RATE_ONE + skew->rate), &at))
		return KTIME_MAX;
	return max(at, 0ll);
}

static s64 ahead_now(void)
{
	return ahead(of_host(), ktime_get_ns());
}

/*
 * The clock of the day, for the gate, which gives it to files (gate/sim/sim_file.c). No call is made, so it costs no virtual time. The
 * thread has the turn: nobody changes anything meanwhile, and its task is the current one.
 */
u64 turn_day(void)
{
	return ktime_get_real_ns() + (any ? ahead_now() : 0);
}

SYSCALL_DEFINE2(turn_clock_gettime, clockid_t, clock, struct __kernel_timespec __user *, time)
{
	long ret = sys_clock_gettime(clock, time);
	struct timespec64 ts;

	if (likely(!any) || ret || !is_of_day(clock))
		return ret;
	if (get_timespec64(&ts, time))
		return -EFAULT;
	ts = ns_to_timespec64(timespec64_to_ns(&ts) + ahead_now());
	return put_timespec64(&ts, time) ? -EFAULT : 0;
}

SYSCALL_DEFINE2(turn_gettimeofday, struct __kernel_old_timeval __user *, time, struct timezone __user *, zone)
{
	long ret = sys_gettimeofday(time, zone);
	struct timespec64 ts;

	if (likely(!any) || ret || !time)
		return ret;
	ts = ns_to_timespec64(ktime_get_real_ns() + ahead_now());
	if (put_user(ts.tv_sec, &time->tv_sec) || put_user(ts.tv_nsec / NSEC_PER_USEC, &time->tv_usec))
		return -EFAULT;
	return 0;
}

SYSCALL_DEFINE1(turn_time, __kernel_old_time_t __user *, time)
{
	struct timespec64 ts = ns_to_timespec64(ktime_get_real_ns() + (unlikely(any) ? ahead_now() : 0));

	if (time && put_user((__kernel_old_time_t)ts.tv_sec, time))
		return -EFAULT;
	return ts.tv_sec;
}

SYSCALL_DEFINE4(turn_clock_nanosleep, clockid_t, clock, int, flags, const struct __kernel_timespec __user *, until,
		struct __kernel_timespec __user *, rest)
{
	struct timespec64 ts;

	/* Linux has no sleep by the coarse clock. */
	if (likely(!any) || (clock != CLOCK_REALTIME && clock != CLOCK_TAI) || !(flags & TIMER_ABSTIME))
		return sys_clock_nanosleep(clock, flags, until, rest);
	if (get_timespec64(&ts, until))
		return -EFAULT;
	if (!timespec64_valid(&ts))
		return -EINVAL;
	current->restart_block.nanosleep.type = TT_NONE;
	return hrtimer_nanosleep(turn_time_to_node(clock, timespec64_to_ktime(ts)), HRTIMER_MODE_ABS, clock);
}

/* As Linux has it: 1970 is not after the start of the machine. */
static bool may_be_set(const struct timespec64 *to)
{
	struct timespec64 up;

	ktime_get_ts64(&up);
	return timespec64_valid_settod(to) && timespec64_compare(to, &up) >= 0;
}

static long set_time(const struct timespec64 *to)
{
	struct skew *skew = of_host();

	if (!capable(CAP_SYS_TIME))
		return -EPERM;
	if (!may_be_set(to))
		return -EINVAL;
	return set(skew, to, skew->rate);
}

SYSCALL_DEFINE2(turn_clock_settime, clockid_t, clock, const struct __kernel_timespec __user *, time)
{
	struct timespec64 ts;

	if (clock != CLOCK_REALTIME)
		return -EINVAL;
	return get_timespec64(&ts, time) ? -EFAULT : set_time(&ts);
}

/* A time zone is nothing that a simulation has. */
SYSCALL_DEFINE2(turn_settimeofday, struct __kernel_old_timeval __user *, time, struct timezone __user *, zone)
{
	struct timespec64 ts;

	if (!time)
		return zone ? -EPERM : 0;
	if (get_user(ts.tv_sec, &time->tv_sec) || get_user(ts.tv_nsec, &time->tv_usec))
		return -EFAULT;
	if (ts.tv_nsec < 0 || ts.tv_nsec >= USEC_PER_SEC)
		return -EINVAL;
	ts.tv_nsec *= NSEC_PER_USEC;
	return set_time(&ts);
}

/* A step and a rate. What Linux does beyond that (a phase-locked loop, PPS, the length of a tick) is refused. */
static long adjust(struct __kernel_timex __user *user)
{
	struct skew *skew = of_host();
	struct timespec64 sum = ns_to_timespec64(ktime_get_real_ns() + ahead_now());
	struct __kernel_timex tx;
	long ret = 0;
	s64 rate;

	if (copy_from_user(&tx, user, sizeof(tx)))
		return -EFAULT;
	if (tx.modes && !capable(CAP_SYS_TIME))
		return -EPERM;
	if (tx.modes & ~(ADJ_SETOFFSET | ADJ_NANO | ADJ_FREQUENCY | ADJ_MAXERROR | ADJ_ESTERROR))
		return -EINVAL;
	if (tx.modes & ADJ_SETOFFSET) {
		if (tx.time.tv_usec < 0 || tx.time.tv_usec >= (tx.modes & ADJ_NANO ? NSEC_PER_SEC : USEC_PER_SEC))
			return -EINVAL;
		sum = timespec64_add(sum, (struct timespec64){ tx.time.tv_sec,
				     tx.time.tv_usec * (tx.modes & ADJ_NANO ? 1 : NSEC_PER_USEC) });
		if (!may_be_set(&sum))
			return -EINVAL;
	}
	rate = skew->rate;
	if (tx.modes & ADJ_FREQUENCY)
		rate = clamp_t(s64, tx.freq, -RATE_MAX, RATE_MAX);
	if (tx.modes & ADJ_SETOFFSET || rate != skew->rate)
		ret = set(skew, &sum, rate);
	if (ret)
		return ret;
	tx = (struct __kernel_timex){ .freq = rate, .tick = USEC_PER_SEC / USER_HZ, .precision = 1, .tolerance = RATE_MAX };
	tx.time.tv_sec = sum.tv_sec;
	tx.time.tv_usec = sum.tv_nsec / NSEC_PER_USEC;
	return copy_to_user(user, &tx, sizeof(tx)) ? -EFAULT : TIME_OK;
}

SYSCALL_DEFINE1(turn_adjtimex, struct __kernel_timex __user *, user)
{
	return adjust(user);
}

SYSCALL_DEFINE2(turn_clock_adjtime, clockid_t, clock, struct __kernel_timex __user *, user)
{
	return clock == CLOCK_REALTIME ? adjust(user) : -EOPNOTSUPP;
}

static struct pernet_operations hosts = {
	.id = &id,
	.size = sizeof(struct skew),
};

static int __init make_hosts(void)
{
	return register_pernet_subsys(&hosts);
}
subsys_initcall(make_hosts);
