// SPDX-License-Identifier: GPL-2.0
/*
 * deadline.c - deadlines of waits that take several calls
 */
#include "policy.h"
#include "tuning.h"

#define NSEC	1000000000ull
#define NS	1ull	/* units, in ns */
#define US	1000ull

u64 wait_now(void)
{
	struct __kernel_timespec ts;

	if (image_call2(__NR_clock_gettime, CLOCK_MONOTONIC, &ts))
		return 0;
	return ts.tv_sec * NSEC + ts.tv_nsec;
}

u64 wait_until_ns(u64 ns)
{
	u64 deadline;

	if (__builtin_add_overflow(wait_now(), ns, &deadline))
		return WAIT_FOREVER;
	return deadline;
}

u64 wait_blind(u64 deadline)
{
	u64 until = wait_until_ns(WAIT_BLIND_NS);

	return until < deadline ? until : deadline;
}

u64 wait_left(u64 deadline)
{
	u64 now;

	if (deadline == WAIT_FOREVER || !deadline)
		return deadline;
	now = wait_now();
	return now < deadline ? deadline - now : 0;
}

/* timespec or timeval: seconds, and nanoseconds or microseconds. */
struct pair {
	s64 sec, frac;
};

/*
 * A NULL pointer waits for ever; a deadline of 0 has always passed. As on Linux, a timeval may have more
 * microseconds than a second has.
 */
static long wait_from(u64 user, u64 unit, u64 *deadline)
{
	struct pair p;

	*deadline = WAIT_FOREVER;
	if (!user)
		return 0;
	if (gate_copy_in(&p, user_ptr(user), sizeof(p)))
		return -EFAULT;
	if (p.sec < 0 || p.frac < 0 || (unit == NS && p.frac >= (s64)NSEC))
		return -EINVAL;
	if (!p.sec && !p.frac)
		*deadline = 0;
	else if ((u64)p.sec < WAIT_FOREVER / NSEC / 2)
		*deadline = wait_until_ns(p.sec * NSEC + p.frac * unit);
	return 0;
}

long wait_from_timespec(u64 user, u64 *deadline)
{
	return wait_from(user, NS, deadline);
}

long wait_from_timeval(u64 user, u64 *deadline)
{
	return wait_from(user, US, deadline);
}

struct __kernel_timespec *wait_arg(u64 deadline, struct __kernel_timespec *ts)
{
	u64 left = wait_left(deadline);

	if (left == WAIT_FOREVER)
		return NULL;
	ts->tv_sec = left / NSEC;
	ts->tv_nsec = left % NSEC;
	return ts;
}

/* Writes the time left for the program; as on Linux, a failing write is ignored. */
static void give_back(u64 user, u64 unit, u64 deadline)
{
	u64 left = wait_left(deadline);
	struct pair p = { left / NSEC, left % NSEC / unit };

	if (user && left != WAIT_FOREVER)
		gate_copy_out(user_ptr(user), &p, sizeof(p));
}

void wait_give_back(u64 user, u64 deadline)
{
	give_back(user, NS, deadline);
}

void wait_give_back_timeval(u64 user, u64 deadline)
{
	give_back(user, US, deadline);
}
