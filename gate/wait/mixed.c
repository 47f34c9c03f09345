// SPDX-License-Identifier: GPL-2.0
/*
 * mixed.c - waits for a set of descriptors of both sides
 *
 * Theory of operation
 * -------------------
 * A set that belongs to one side goes there unchanged. A mixed set is checked on the host without waiting. If
 * nothing is ready there, the thread sleeps in the node with the whole set: descriptors of the host have proxies at
 * their own numbers, which the feeder keeps up to date (feed.c). A ready proxy is only a reason to check the host
 * again, never a result.
 *
 * An epoll in the set counts as both sides', whatever its members are: members may be added meanwhile (epoll.c).
 */
#include "policy.h"

u32 mixed_owner(s32 fd)
{
	if (fd < 0)
		return 0;
	if (!fd_is_node(fd))
		return OURS_HOST;
	return ep_known(fd) || ep_is_borrowed(fd) ? OURS_NODE | OURS_HOST : OURS_NODE;
}

/* Copies fds[], with the other side's numbers blanked. */
static void pick(struct pollfd *out, const struct pollfd *fds, u32 n, u32 whose)
{
	u32 i;

	for (i = 0; i < n; i++) {
		out[i] = fds[i];
		out[i].revents = 0;
		if (!(mixed_owner(fds[i].fd) & whose))
			out[i].fd = -1;
	}
}

/*
 * Adds the results of out[] to fds[]. `may` is NULL for poll. For select it has the events that count, for each
 * entry: an entry with only other events is ignored from then on.
 */
static u32 merge(struct pollfd *fds, const struct pollfd *out, u32 n, const u16 *may)
{
	u32 i, ready = 0;
	u16 bits;

	for (i = 0; i < n; i++) {
		bits = out[i].fd < 0 ? 0 : (u16)out[i].revents;
		if (may && bits) {
			bits &= may[i] | POLLNVAL;
			if (!bits)
				fds[i].fd = -1;
		}
		fds[i].revents |= bits;
		ready += !!fds[i].revents;
	}
	return ready;
}

static long look_on_host(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may)
{
	long ret;

	pick(tmp, fds, n, OURS_HOST);
	ret = host_syscall3(__NR_poll, (long)tmp, n, 0);
	return ret <= 0 ? ret : merge(fds, tmp, n, may);
}

static long poll_node(struct pollfd *tmp, u32 n, u64 deadline)
{
	struct __kernel_timespec ts, *arg = wait_arg(deadline, &ts);

	return image_call(__NR_ppoll, (long)tmp, n, (long)arg, 0, 8, 0);
}

/*
 * Makes sure that the host's members wake a sleeper in the node. False: one can't. *slot is an extra number to poll
 * if epolls are among them.
 */
static bool expect_all(const struct pollfd *fds, u32 n, s32 *slot)
{
	bool all = true;
	s32 fd;
	u32 i;

	if (*slot >= 0)
		feed_slot_clear(*slot);
	for (i = 0; i < n; i++) {
		fd = fds[i].fd;
		if (!(mixed_owner(fd) & OURS_HOST))
			continue;
		if (fd_is_node(fd)) {
			if (*slot < 0)
				*slot = feed_slot_get();
			all &= *slot >= 0 && !ep_arm(fd);
		} else if (fd < RING3_FDS_MAX && feed_mine()) {
			all &= !feed_expect(fd, (u16)fds[i].events);
		} else {
			all = false;
		}
	}
	return all;
}

/* Sleeps with the whole set and the slot; returns how many are ready; tmp has those of the node. */
static long sleep_in_node(const struct pollfd *fds, struct pollfd *tmp, u32 n, s32 slot, u64 until)
{
	long ret;
	u32 i;

	for (i = 0; i < n; i++) {
		tmp[i] = fds[i];
		if (fds[i].fd >= RING3_FDS_MAX)
			tmp[i].fd = -1;
	}
	tmp[n] = (struct pollfd){ .fd = slot, .events = POLLIN };
	ret = poll_node(tmp, n + 1, until);
	for (i = 0; i < n; i++) {
		if (!(mixed_owner(fds[i].fd) & OURS_NODE))
			tmp[i].fd = -1;
	}
	/* A restart block would refer to the gate's copy of the set. */
	return ret == -ERESTART_RESTARTBLOCK ? -ERESTARTNOHAND : ret;
}

static long wait_loop(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may,
		      u64 deadline, s32 *slot)
{
	u64 until;
	long ret;

	for (;;) {
		ret = look_on_host(fds, tmp, n, may);
		if (ret < 0)
			return ret;
		if (ret || !wait_left(deadline)) {
			pick(tmp, fds, n, OURS_NODE);
			ret = poll_node(tmp, n, 0);
			return merge(fds, tmp, n, may);
		}
		until = deadline;
		if (!expect_all(fds, n, slot))
			until = wait_blind(deadline);
		ret = sleep_in_node(fds, tmp, n, *slot, until);
		if (ret < 0)
			return ret;
		/* Nothing is ready, and this was not an early look: the time is over. */
		if (!ret && until == deadline)
			return 0;
		if (merge(fds, tmp, n, may)) {
			ret = look_on_host(fds, tmp, n, may);
			return ret > 0 ? ret : merge(fds, tmp, n, may);
		}
	}
}

/* tmp has room for n + 1 entries. Results are in fds[].revents; returns their number. */
long mixed_wait(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may, u64 deadline)
{
	s32 slot = -1;
	long ret;
	u32 i;

	for (i = 0; i < n; i++) {
		fds[i].revents = 0;
		if (fds[i].fd >= 0 && fd_is_node(fds[i].fd) && ep_known(fds[i].fd))
			ep_polled(fds[i].fd);
	}
	ret = wait_loop(fds, tmp, n, may, deadline, &slot);
	feed_slot_put(slot);
	return ret;
}

/* The signal mask of ppoll and pselect6 while the thread waits in the node. */
long mixed_mask_begin(u64 user, u64 size, bool *masked)
{
	u64 set;

	*masked = false;
	if (!user)
		return 0;
	if (size != sizeof(set))
		return -EINVAL;
	if (gate_copy_in(&set, user_ptr(user), sizeof(set)))
		return -EFAULT;
	gate_sigmask_begin(set);
	*masked = true;
	return 0;
}

void mixed_mask_end(bool masked, long ret)
{
	if (masked)
		gate_sigmask_end(ret);
}
