// SPDX-License-Identifier: GPL-2.0
/*
 * wait.c - deadlines of waits that take more than one call
 */
#include "policy.h"
#include "tuning.h"

#define NSEC	1000000000ull

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

/* A NULL pointer is for ever; 0 is a deadline that has always passed. */
long wait_from_timespec(u64 user, u64 *deadline)
{
	struct __kernel_timespec ts;

	*deadline = WAIT_FOREVER;
	if (!user)
		return 0;
	if (gate_copy_in(&ts, user_ptr(user), sizeof(ts)))
		return -EFAULT;
	if (ts.tv_sec < 0 || (u64)ts.tv_nsec >= NSEC)
		return -EINVAL;
	if (!ts.tv_sec && !ts.tv_nsec)
		*deadline = 0;
	else if ((u64)ts.tv_sec < WAIT_FOREVER / NSEC / 2)
		*deadline = wait_until_ns(ts.tv_sec * NSEC + ts.tv_nsec);
	return 0;
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

/* Time left, for the caller's eyes; Linux too ignores that it can't be written. */
void wait_give_back(u64 user, u64 deadline)
{
	struct __kernel_timespec ts;

	if (user && wait_arg(deadline, &ts))
		gate_copy_out(user_ptr(user), &ts, sizeof(ts));
}
