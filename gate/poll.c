// SPDX-License-Identifier: GPL-2.0
/*
 * poll.c - poll and select
 *
 * Theory of operation
 * -------------------
 * A set that belongs to one side altogether goes there as it is. A mixed set is
 * looked at on the host without waiting, and if nothing is ready there, the
 * thread sleeps in the node with the whole set: host descriptors have proxies
 * at their own numbers, which the feeder keeps (feed.c). What a proxy says on
 * waking is only a reason to look at the host again, never an answer.
 *
 * An epoll in the set counts as the node's, the host's, or both, after its
 * members (epoll.c).
 */
#include "policy.h"

#define OURS_NODE	1u
#define OURS_HOST	2u

/* A host descriptor that can't have a proxy is looked at this often instead. */
#define BLIND_NS	10000000ull

#define IN_BITS		(POLLIN | POLLRDNORM | POLLRDBAND)
#define OUT_BITS	(POLLOUT | POLLWRNORM | POLLWRBAND)

static u32 owner_of(s32 fd)
{
	u32 sides;

	if (fd < 0)
		return 0;
	if (!fd_is_node(fd))
		return OURS_HOST;
	sides = ep_sides(fd);
	if (!(sides & EP_HOST))
		return OURS_NODE;
	return sides & EP_NODE ? OURS_NODE | OURS_HOST : OURS_HOST;
}

static u32 owners(const struct pollfd *fds, u32 n)
{
	u32 i, all = 0;

	for (i = 0; i < n; i++)
		all |= owner_of(fds[i].fd);
	return all;
}

/* Copies of fds[] with the others' numbers blanked. */
static void pick(struct pollfd *out, const struct pollfd *fds, u32 n, u32 whose)
{
	u32 i;

	for (i = 0; i < n; i++) {
		out[i] = fds[i];
		out[i].revents = 0;
		if (!(owner_of(fds[i].fd) & whose))
			out[i].fd = -1;
	}
}

/*
 * Adds what out[] says to fds[]. `may` is NULL for poll; for select it has, per
 * entry, the bits that count: one with nothing but others is out of the game.
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
 * See to it that the host's members wake a sleeper in the node. False: one won't.
 * *slot is the number to poll with them when epolls are among them.
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
		if (!(owner_of(fd) & OURS_HOST))
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

/* Sleeps with the whole set and the slot; how many are ready, and those of the node in tmp. */
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
		if (!(owner_of(fds[i].fd) & OURS_NODE))
			tmp[i].fd = -1;
	}
	/* A restart block would remember our copy of the set. */
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
		if (!expect_all(fds, n, slot)) {
			until = wait_until_ns(BLIND_NS);
			if (until > deadline)
				until = deadline;
		}
		ret = sleep_in_node(fds, tmp, n, *slot, until);
		if (ret < 0)
			return ret;
		/* Nothing, and not for want of a better look: the time is over. */
		if (!ret && until == deadline)
			return 0;
		if (merge(fds, tmp, n, may)) {
			ret = look_on_host(fds, tmp, n, may);
			return ret > 0 ? ret : merge(fds, tmp, n, may);
		}
	}
}

/* tmp has room for n + 1 entries. Results are in fds[].revents; returns how many. */
static long wait_mixed(struct pollfd *fds, struct pollfd *tmp, u32 n, const u16 *may, u64 deadline)
{
	s32 slot = -1;
	long ret;
	u32 i;

	for (i = 0; i < n; i++) {
		fds[i].revents = 0;
		if (fds[i].fd >= 0 && fd_is_node(fds[i].fd) && ep_sides(fds[i].fd))
			ep_polled(fds[i].fd);
	}
	ret = wait_loop(fds, tmp, n, may, deadline, &slot);
	feed_slot_put(slot);
	return ret;
}

/* The signal mask of ppoll and pselect6 while the node does the waiting. */
static long mask_begin(u64 user, u64 size, bool *masked)
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

static void mask_end(bool masked)
{
	if (masked)
		gate_sigmask_end();
}

/* Time left, for the caller's eyes; Linux too ignores that it can't be written. */
static void give_back_timespec(u64 user, u64 deadline)
{
	struct __kernel_timespec ts;

	if (user && wait_arg(deadline, &ts))
		gate_copy_out(user_ptr(user), &ts, sizeof(ts));
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

static long poll_mixed(struct gate_regs *r, struct pollfd *fds, u32 n)
{
	bool timed = r->nr == __NR_ppoll, masked = false;
	u64 deadline = WAIT_FOREVER;
	s32 ms = r->a[2];
	long ret = 0;

	if (timed)
		ret = wait_from_timespec(r->a[2], &deadline);
	else if (ms >= 0)
		deadline = ms ? wait_until_ns(ms * 1000000ull) : 0;
	if (!ret && timed)
		ret = mask_begin(r->a[3], r->a[4], &masked);
	if (ret)
		return ret;
	ret = wait_mixed(fds, fds + n, n, NULL, deadline);
	mask_end(masked);
	if (timed)
		give_back_timespec(r->a[2], deadline);
	if (ret >= 0 && put_revents(r->a[0], fds, n))
		ret = -EFAULT;
	return ret;
}

static long poll_in_node(struct gate_regs *r)
{
	struct gate_regs plain = *r;
	bool masked = false;
	long ret;

	if (r->nr == __NR_ppoll) {
		ret = mask_begin(r->a[3], r->a[4], &masked);
		if (ret)
			return ret;
		plain.a[3] = 0;
	}
	ret = image_pass(&plain);
	mask_end(masked);
	return ret;
}

long do_poll(struct gate_regs *r)
{
	struct pollfd small[2 * POLL_STACK + 1], *fds = small;
	u32 n = r->a[1], whose;
	long ret;

	if (n > POLL_STACK) {
		if (n > RING3_FDS_MAX)	/* the host knows its limit */
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
			ret = gate_host_regs(r);
		else
			ret = poll_mixed(r, fds, n);
	}
	if (fds != small)
		gate_free(fds);
	return ret;
}

/*
 * select: the three bitmaps become a poll set. `words` of each set; in, out and
 * except follow each other in bits[].
 */
#define SELECT_WORDS	16	/* up to 1024 descriptors without the allocator */

struct select_set {
	u32 words;
	u32 n;			/* entries of fds[] */
	u64 *bits;
	struct pollfd *fds;	/* room for 2 * n + 1 */
	u16 *may;
};

static bool bit(const u64 *map, u32 fd)
{
	return map[fd / 64] >> (fd % 64) & 1;
}

static long get_bits(struct gate_regs *r, u64 *bits, u32 words, u32 limit)
{
	u32 i;

	for (i = 0; i < 3; i++, bits += words) {
		memset(bits, 0, words * sizeof(u64));
		if (!r->a[1 + i])
			continue;
		if (gate_copy_in(bits, user_ptr(r->a[1 + i]), words * sizeof(u64)))
			return -EFAULT;
		if (limit % 64)
			bits[words - 1] &= (1ull << (limit % 64)) - 1;
	}
	return 0;
}

static u32 union_owners(const u64 *bits, u32 words, u32 *n)
{
	u32 w, all = 0;
	u64 left;

	*n = 0;
	for (w = 0; w < words; w++) {
		left = bits[w] | bits[words + w] | bits[2 * words + w];
		*n += __builtin_popcountll(left);
		for (; left; left &= left - 1)
			all |= owner_of(w * 64 + __builtin_ctzll(left));
	}
	return all;
}

static void to_poll(struct select_set *s)
{
	const u64 *in = s->bits, *out = in + s->words, *ex = out + s->words;
	struct pollfd *p = s->fds;
	u16 *may = s->may;
	u32 fd;

	for (fd = 0; fd < s->words * 64; fd++) {
		if (!(bit(in, fd) || bit(out, fd) || bit(ex, fd)))
			continue;
		p->fd = fd;
		p->events = 0;
		*may = 0;
		if (bit(in, fd)) {
			p->events |= IN_BITS;
			*may |= IN_BITS | POLLHUP | POLLERR;
		}
		if (bit(out, fd)) {
			p->events |= OUT_BITS;
			*may |= OUT_BITS | POLLERR;
		}
		if (bit(ex, fd)) {
			p->events |= POLLPRI;
			*may |= POLLPRI;
		}
		p++;
		may++;
	}
}

/* The answer, in bits[] again; how many bits there are, or -EBADF. */
static long from_poll(struct select_set *s, const s32 *numbers)
{
	static const u16 means[3] = {
		IN_BITS | POLLHUP | POLLERR, OUT_BITS | POLLERR, POLLPRI,
	};
	long total = 0;
	u32 i, k;
	u64 *map;

	for (i = 0; i < s->n; i++) {
		u32 fd = numbers[i];

		if (s->fds[i].revents & POLLNVAL)
			return -EBADF;
		for (k = 0; k < 3; k++) {
			map = s->bits + k * s->words;
			if (!bit(map, fd))
				continue;
			if (s->fds[i].revents & means[k])
				total++;
			else
				map[fd / 64] &= ~(1ull << (fd % 64));
		}
	}
	return total;
}

static long put_bits(struct gate_regs *r, const struct select_set *s)
{
	u32 i;

	for (i = 0; i < 3; i++) {
		if (r->a[1 + i] && gate_copy_out(user_ptr(r->a[1 + i]), s->bits + i * s->words,
						 s->words * sizeof(u64)))
			return -EFAULT;
	}
	return 0;
}

static long select_mixed(struct gate_regs *r, struct select_set *s, u64 deadline)
{
	u64 size = s->n * (2 * sizeof(struct pollfd) + sizeof(u16) + sizeof(s32)) +
		   sizeof(struct pollfd);
	s32 *numbers;
	long ret;
	u32 i;

	s->fds = gate_alloc(size);
	if (!s->fds)
		return -ENOMEM;
	numbers = (s32 *)(s->fds + 2 * s->n + 1);
	s->may = (u16 *)(numbers + s->n);
	to_poll(s);
	for (i = 0; i < s->n; i++)
		numbers[i] = s->fds[i].fd;
	ret = wait_mixed(s->fds, s->fds + s->n, s->n, s->may, deadline);
	if (ret >= 0)
		ret = from_poll(s, numbers);
	if (ret >= 0 && put_bits(r, s))
		ret = -EFAULT;
	gate_free(s->fds);
	return ret;
}

static long timeval_deadline(u64 user, u64 *deadline)
{
	struct __kernel_old_timeval tv;

	*deadline = WAIT_FOREVER;
	if (!user)
		return 0;
	if (gate_copy_in(&tv, user_ptr(user), sizeof(tv)))
		return -EFAULT;
	if (tv.tv_sec < 0 || tv.tv_usec < 0)
		return -EINVAL;
	if (!tv.tv_sec && !tv.tv_usec)
		*deadline = 0;
	else if (tv.tv_sec < 1000000000)
		*deadline = wait_until_ns(tv.tv_sec * 1000000000ull + tv.tv_usec * 1000ull);
	return 0;
}

static void give_back_timeval(u64 user, u64 deadline)
{
	struct __kernel_old_timeval tv;
	u64 left = wait_left(deadline);

	if (!user || left == WAIT_FOREVER)
		return;
	tv.tv_sec = left / 1000000000;
	tv.tv_usec = left % 1000000000 / 1000;
	gate_copy_out(user_ptr(user), &tv, sizeof(tv));
}

static long select_timed(struct gate_regs *r, struct select_set *s)
{
	struct gate_sigset_arg sig = { 0, 0 };
	bool p = r->nr == __NR_pselect6, masked = false;
	u64 deadline;
	long ret;

	if (p) {
		ret = wait_from_timespec(r->a[4], &deadline);
		if (!ret && r->a[5] && gate_copy_in(&sig, user_ptr(r->a[5]), sizeof(sig)))
			ret = -EFAULT;
		if (!ret)
			ret = mask_begin(sig.set, sig.size, &masked);
	} else {
		ret = timeval_deadline(r->a[4], &deadline);
	}
	if (ret)
		return ret;
	ret = select_mixed(r, s, deadline);
	mask_end(masked);
	if (p)
		give_back_timespec(r->a[4], deadline);
	else
		give_back_timeval(r->a[4], deadline);
	return ret;
}

static long select_in_node(struct gate_regs *r)
{
	struct gate_regs plain = *r;
	struct gate_sigset_arg sig;
	bool masked = false;
	long ret;

	if (r->nr == __NR_pselect6 && r->a[5]) {
		if (gate_copy_in(&sig, user_ptr(r->a[5]), sizeof(sig)))
			return -EFAULT;
		ret = mask_begin(sig.set, sig.size, &masked);
		if (ret)
			return ret;
		plain.a[5] = 0;
	}
	ret = image_pass(&plain);
	mask_end(masked);
	return ret;
}

long do_select(struct gate_regs *r)
{
	u64 small[3 * SELECT_WORDS];
	struct select_set s = { .bits = small };
	s32 limit = r->a[0];
	u32 whose;
	long ret;

	if (limit <= 0 || limit > (s32)(16 * RING3_FDS_MAX))
		return gate_host_regs(r);
	s.words = (limit + 63) / 64;
	if (s.words > SELECT_WORDS) {
		s.bits = gate_alloc(3 * s.words * sizeof(u64));
		if (!s.bits)
			return -ENOMEM;
	}
	ret = get_bits(r, s.bits, s.words, limit);
	if (!ret) {
		whose = union_owners(s.bits, s.words, &s.n);
		if (whose == OURS_NODE)
			ret = select_in_node(r);
		else if (!(whose & OURS_NODE))
			ret = gate_host_regs(r);
		else
			ret = select_timed(r, &s);
	}
	if (s.bits != small)
		gate_free(s.bits);
	return ret;
}
