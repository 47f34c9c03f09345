// SPDX-License-Identifier: GPL-2.0
/*
 * poll.c - poll and ppoll
 */
#include "policy.h"

#define FEW		32	/* entries */
#define MSEC		1000000ull	/* ns */

static u32 owners(const struct pollfd *fds, u32 n)
{
	u32 i, all = 0;

	for (i = 0; i < n; i++)
		all |= mixed_owner(fds[i].fd);
	return all;
}

static long put_revents(u64 user, const struct pollfd *fds, u32 n)
{
	u32 i;

	user += offsetof(struct pollfd, revents);
	for (i = 0; i < n; i++, user += sizeof(*fds)) {
		if (gate_copy_out(user_ptr(user), &fds[i].revents, sizeof(fds[i].revents)))
			return -EFAULT;
	}
	return 0;
}

/* Linux checks for signals before it reports that nothing is ready, even without waiting. */
static long mask_end(bool masked, long ret)
{
	if (masked && !ret && READ_ONCE(gate_thread()->sigpending))
		ret = -ERESTARTNOHAND;
	mixed_mask_end(masked, ret);
	return ret;
}

static long poll_on_host(struct gate_regs *r)
{
	return r->nr == __NR_poll ? gate_poll(r) : gate_host_masked(r, r->a[3]);
}

/* Continues with poll_mixed(). */
static long poll_again(struct gate_regs *r, const struct gate_restart *wait)
{
	struct gate_regs plain = *r;

	plain.nr = __NR_poll;
	plain.a[2] = (wait_left(wait->until) + MSEC - 1) / MSEC;
	return do_poll(&plain);
}

static long poll_mixed(struct gate_regs *r, struct pollfd *fds, u32 n)
{
	bool timed = r->nr == __NR_ppoll, masked = false;
	u64 deadline = WAIT_FOREVER;
	s32 ms = r->a[2];
	long ret = 0;

	if (timed)
		ret = wait_from_timespec(r->a[2], &deadline);
	else if (ms >= 0)
		deadline = ms ? wait_until_ns(ms * MSEC) : 0;
	if (!ret && timed)
		ret = mixed_mask_begin(r->a[3], r->a[4], &masked);
	if (ret)
		return ret;
	ret = mask_end(masked, mixed_wait(fds, fds + n, n, NULL, deadline));
	if (timed) {
		wait_give_back(r->a[2], deadline);
	} else if (ret == -ERESTARTNOHAND && deadline && deadline != WAIT_FOREVER) {
		struct gate_restart wait = { .go_on = poll_again, .until = deadline };

		return gate_restart_later(&wait);
	}
	if (ret >= 0 && put_revents(r->a[0], fds, n))
		ret = -EFAULT;
	return ret;
}

/*
 * RLIMIT_NOFILE, which the host keeps for the program, limits the number of entries, too. Small sets are not
 * checked.
 */
static bool beyond_limit(u32 n)
{
	struct rlimit64 lim;

	return n > FEW && !host_syscall4(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&lim) &&
	       n > lim.rlim_cur;
}

static long poll_in_node(struct gate_regs *r)
{
	struct gate_regs plain = *r;
	bool masked = false;
	long ret;

	if (unlikely(beyond_limit(r->a[1])))
		return -EINVAL;
	if (r->nr == __NR_ppoll) {
		ret = mixed_mask_begin(r->a[3], r->a[4], &masked);
		if (ret)
			return ret;
		plain.a[3] = 0;
	}
	return mask_end(masked, image_pass(&plain));
}

long do_poll(struct gate_regs *r)
{
	struct pollfd small[2 * POLL_STACK + 1], *fds = small;
	u32 n = r->a[1], whose;
	long ret;

	if (n > POLL_STACK) {
		if (n > RING3_FDS_MAX)	/* the host checks the limit */
			return gate_host_regs(r);
		fds = gate_alloc((2 * n + 1) * sizeof(*fds));
		if (!fds)
			return -ENOMEM;
	}
	if (gate_copy_in(fds, user_ptr(r->a[0]), n * sizeof(*fds))) {
		ret = -EFAULT;
	} else {
		whose = owners(fds, n);
		if (whose == OURS_NODE)
			ret = poll_in_node(r);
		else if (!(whose & OURS_NODE))
			ret = poll_on_host(r);
		else
			ret = poll_mixed(r, fds, n);
	}
	if (fds != small)
		gate_free(fds);
	return ret;
}
