// SPDX-License-Identifier: GPL-2.0
/*
 * select.c - select and pselect6
 *
 * The three bitmaps of a mixed set become a poll set; its results become bitmaps again.
 */
#include "policy.h"

#define IN_BITS		(POLLIN | POLLRDNORM | POLLRDBAND)
#define OUT_BITS	(POLLOUT | POLLWRNORM | POLLWRBAND)
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

/* The size of the host's descriptor table of this process; a large number if the host does not tell. */
static u32 table_size(void)
{
	const char *size, *end;
	char text[1024];

	read_and_close(own_open(OWN_STATUS), text, sizeof(text));
	size = proc_line(text, "FDSize:\t");
	return size ? gate_strtou(size, 10, &end) : 16 * RING3_FDS_MAX;
}

/* The highest of these 64 numbers that is open, or 0. */
static u32 highest_open(u64 numbers, u32 first)
{
	struct pollfd p[64];
	u32 n = 0, top = 0, i, fd;
	long ret;

	for (; numbers; numbers &= numbers - 1) {
		fd = first + __builtin_ctzll(numbers);
		if (fd_is_node(fd))
			top = fd;
		else if (!reserved_fd(fd))
			p[n++] = (struct pollfd){ .fd = fd };
	}
	ret = n ? host_syscall3(__NR_poll, (long)p, n, 0) : 0;
	for (i = 0; i < n; i++)
		if (p[i].fd > (s32)top && (ret < 0 || !(p[i].revents & POLLNVAL)))
			top = p[i].fd;
	return top;
}

/*
 * Linux reads the bitmaps only up to the size of the process's descriptor table (core_sys_select()), however large
 * n is: programs pass getdtablesize() with an fd_set of 1024 bits, after which other data or no memory follows. The
 * gate can't ask for the size of the table, but numbers above the last open one do not matter.
 */
static u32 reach(const struct gate_regs *r, u32 limit)
{
	u32 top = SELECT_WORDS * 64, size = table_size(), words, k, w, m, i, fd;
	u64 bits[64], user;

	if (limit > size)
		limit = size > top ? size : top;
	words = (limit + 63) / 64;
	for (k = 1; k <= 3; k++) {
		for (w = SELECT_WORDS; r->a[k] && w < words; w += m) {
			user = r->a[k] + w * sizeof(u64);
			m = (GATE_PAGE - user % GATE_PAGE) / sizeof(u64);
			m = m > ARRAY_SIZE(bits) ? ARRAY_SIZE(bits) : m ? m : 1;
			m = m > words - w ? words - w : m;
			if (gate_copy_in(bits, user_ptr(user), m * sizeof(u64)))
				break;
			for (i = 0; i < m; i++) {
				fd = bits[i] ? highest_open(bits[i], (w + i) * 64) : 0;
				if (fd >= top && fd < limit)
					top = fd + 1;
			}
		}
	}
	return top;
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
			all |= mixed_owner(w * 64 + __builtin_ctzll(left));
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

/* Writes the results to bits[]; returns the number of bits, or -EBADF. */
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
	ret = mixed_wait(s->fds, s->fds + s->n, s->n, s->may, deadline);
	if (ret >= 0)
		ret = from_poll(s, numbers);
	if (ret >= 0 && put_bits(r, s))
		ret = -EFAULT;
	gate_free(s->fds);
	return ret;
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
			ret = mixed_mask_begin(sig.set, sig.size, &masked);
	} else {
		ret = wait_from_timeval(r->a[4], &deadline);
	}
	if (ret)
		return ret;
	ret = select_mixed(r, s, deadline);
	mixed_mask_end(masked, ret);
	if (p)
		wait_give_back(r->a[4], deadline);
	else
		wait_give_back_timeval(r->a[4], deadline);
	return ret;
}

static long select_on_host(struct gate_regs *r)
{
	struct gate_sigset_arg sig;

	if (r->nr != __NR_pselect6 || !r->a[5] || gate_copy_in(&sig, user_ptr(r->a[5]), sizeof(sig)))
		return gate_host_regs(r);
	return gate_host_masked(r, sig.set);
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
		ret = mixed_mask_begin(sig.set, sig.size, &masked);
		if (ret)
			return ret;
		plain.a[5] = 0;
	}
	ret = image_pass(&plain);
	mixed_mask_end(masked, ret);
	return ret;
}

long do_select(struct gate_regs *r)
{
	u64 small[3 * SELECT_WORDS];
	struct select_set s = { .bits = small };
	struct gate_regs trimmed;
	s32 limit = r->a[0];
	u32 whose;
	long ret;

	if (limit <= 0)
		return select_on_host(r);
	if (unlikely(limit > SELECT_WORDS * 64)) {
		/* No process can have more descriptors (fs.nr_open). */
		if (limit > (s32)(16 * RING3_FDS_MAX))
			limit = 16 * RING3_FDS_MAX;
		limit = reach(r, limit);
		trimmed = *r;
		trimmed.a[0] = limit;
		r = &trimmed;
	}
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
			ret = select_on_host(r);
		else
			ret = select_timed(r, &s);
	}
	if (s.bits != small)
		gate_free(s.bits);
	return ret;
}
