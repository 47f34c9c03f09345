// SPDX-License-Identifier: GPL-2.0
/*
 * epoll_wait.c - waiting on an epoll with members on one side or both; see epoll.c
 */
#include "wait/epoll.h"
#include "tuning.h"

#define CHUNK		32			/* events handled at once */

static u64 cycles(void)
{
	return sim_on() ? 0 : __builtin_ia32_rdtsc();	/* means nothing in virtual time */
}

long ep_filter(u64 user, long n, struct gate_mutex *lock, bool (*keeps)(const struct epoll_event *ev, void *arg), void *arg)
{
	struct epoll_event ev[CHUNK];
	long from, to = 0, i, m, kept;

	for (from = 0; from < n; from += m) {
		m = n - from < CHUNK ? n - from : CHUNK;
		if (gate_copy_in(ev, user_ptr(user + from * sizeof(ev[0])), m * sizeof(ev[0])))
			return -EFAULT;
		if (lock)
			gate_lock(lock);
		for (i = 0, kept = 0; i < m; i++)
			if (keeps(&ev[i], arg))
				ev[kept++] = ev[i];
		if (lock)
			gate_unlock(lock);
		if (to + kept != from + m &&
		    gate_copy_out(user_ptr(user + to * sizeof(ev[0])), ev, kept * sizeof(ev[0])))
			return -EFAULT;
		to += kept;
	}
	return to;
}

static bool is_programs(const struct epoll_event *ev, void *ours)
{
	if (ev->data == MAGIC)
		*(bool *)ours = true;
	return ev->data != MAGIC;
}

/* Removes the gate's own events from the n at `user`; returns the number left. *ours: there were some. */
static long ep_strip(u64 user, long n, bool *ours)
{
	*ours = false;
	return ep_filter(user, n, NULL, is_programs, ours);
}

static long twin_look(struct ep *ep, u32 epfd, u64 user, long max)
{
	bool ours;
	long n;

	ep->looked = cycles();
	n = host_syscall4(__NR_epoll_wait, epfd, user, max, 0);
	if (n > 0 && unlikely(READ_ONCE(ep->was_kicked) || READ_ONCE(ep->shared)))
		n = ep_strip(user, n, &ours);
	return n;
}

static long node_wait(u32 epfd, u64 user, long max, u64 deadline)
{
	struct __kernel_timespec ts, *arg = wait_arg(deadline, &ts);

	return image_call(__NR_epoll_pwait2, epfd, user, max, (long)arg, 0, 0);
}

/*
 * If ready members of the host fill each answer, every other answer starts with the node's members, since Linux has
 * members take turns. 0: it is not their turn, or they have no events.
 */
static long node_turn(struct ep *ep, u32 epfd, u64 user, long max)
{
	const u64 size = sizeof(struct epoll_event);
	bool ours = false;
	long node, host;

	if (likely(!READ_ONCE(ep->node_first)))
		return 0;
	WRITE_ONCE(ep->node_first, 0);
	WRITE_ONCE(ep->maybe, 1);
	node = node_wait(epfd, user, max, 0);
	if (node > 0)
		node = ep_strip(user, node, &ours);
	if (node <= 0 || node == max)
		return node;
	host = twin_look(ep, epfd, user + node * size, max - node);
	return host > 0 ? node + host : node;
}

/* As ep_wait_once(), for an epoll that is polled itself. Without a slot of the feeder it polls. */
static long ep_wait_polled(struct ep *ep, u32 epfd, u64 user, long max, u64 deadline)
{
	const u64 size = sizeof(struct epoll_event);
	struct __kernel_timespec ts, *arg;
	struct pollfd p[2];
	s32 slot = -1;
	long host, ret;
	bool ours;

	ret = node_turn(ep, epfd, user, max);
	if (ret)
		return ret;
	for (;;) {
		host = twin_look(ep, epfd, user, max);
		if (host == max)
			WRITE_ONCE(ep->node_first, 1);
		if (host < 0 || host == max)
			ret = host;
		else
			ret = node_wait(epfd, user + host * size, max - host, 0);
		/* Another process that has the epoll, and did not poll it, has a member of its own in it. */
		if (host >= 0 && host != max && ret > 0)
			ret = ep_strip(user + host * size, ret, &ours);
		if (host >= 0 && host != max)
			ret = ret < 0 ? (host ? host : ret) : host + ret;
		if (ret || !wait_left(deadline))
			break;
		if (slot < 0)
			slot = feed_slot_get();
		if (slot >= 0) {
			feed_slot_clear(slot);
			ep_arm_ep(ep, epfd);
		}
		p[0] = (struct pollfd){ .fd = epfd, .events = POLLIN };
		p[1] = (struct pollfd){ .fd = slot, .events = POLLIN };
		arg = wait_arg(slot < 0 ? wait_blind(deadline) : deadline, &ts);
		ret = image_call(__NR_ppoll, (long)p, 2, (long)arg, 0, 8, 0);
		if (ret == -ERESTART_RESTARTBLOCK)
			ret = -ERESTARTNOHAND;
		if (ret < 0)
			break;
	}
	feed_slot_put(slot);
	return ret;
}

static long ep_wait_once(struct ep *ep, u32 epfd, u64 user, long max, u64 deadline)
{
	const u64 size = sizeof(struct epoll_event);
	long host = 0, node = 0, more;
	bool ours = false;
	u64 until;

	node = node_turn(ep, epfd, user, max);
	if (node)
		return node;
	for (;;) {
		if (READ_ONCE(ep->maybe) || !deadline || cycles() - ep->looked > EPOLL_LOOK_CYCLES) {
			WRITE_ONCE(ep->maybe, 0);
			host = twin_look(ep, epfd, user, max);
			if (host < 0)
				return host;
			if (host > 0)
				WRITE_ONCE(ep->maybe, 1);	/* level-triggered events stay */
		}
		if (host == max) {
			WRITE_ONCE(ep->node_first, 1);
			break;
		}
		until = host ? 0 : deadline;
		if (!host && unlikely(!ep_arm_ep(ep, epfd)))
			until = wait_blind(deadline);
		node = node_wait(epfd, user + host * size, max - host, until);
		if (node > 0)
			node = ep_strip(user + host * size, node, &ours);
		if (node < 0)
			return host ? host : node;
		if (!ours && (host || node || likely(until == deadline)))
			break;
		ours = false;
		WRITE_ONCE(ep->maybe, 1);
		if (host)
			break;
		if (!node && unlikely(READ_ONCE(ep->polled)))
			return ep_wait_polled(ep, epfd, user, max, deadline);
		if (node) {
			more = node < max ? twin_look(ep, epfd, user + node * size, max - node) : 0;
			return more > 0 ? node + more : node;
		}
	}
	return host + node;
}

static long ep_wait_both(struct ep *ep, u32 epfd, u64 user, long max, u64 deadline)
{
	long ret;

	if (unlikely(READ_ONCE(ep->polled)))
		return ep_wait_polled(ep, epfd, user, max, deadline);
	__atomic_fetch_add(&ep->node_waiters, 1, __ATOMIC_SEQ_CST);
	ret = ep_wait_once(ep, epfd, user, max, deadline);
	/* As on Linux: a level-triggered event that is still there wakes the next waiter, too. */
	if (__atomic_sub_fetch(&ep->node_waiters, 1, __ATOMIC_SEQ_CST) && ret > 0 &&
	    READ_ONCE(ep->maybe))
		image_call2(RING3_NR_PROXY_SET, feed_fd(), EPOLLIN);
	return ret;
}

static long ep_wait_mixed(struct ep *ep, u32 epfd, u64 user, long max, u64 deadline)
{
	long ret;

	if (max <= 0 || max > (long)(0x7fffffff / sizeof(struct epoll_event)))
		return -EINVAL;
	ret = ep_mix(ep, epfd);
	if (ret)
		return ret;
	do {
		ret = ep_wait_both(ep, epfd, user, max, deadline);
		if (ret <= 0 || likely(!READ_ONCE(ep->nests)))
			break;
		ret = ep_nested_once(ep, epfd, user, ret);
	} while (!ret);
	return ret;
}

/*
 * For a process that uses another's memory, but has descriptors of its own (CLONE_VM without CLONE_FILES): the
 * gate's state is about the other's epolls, and the feeder is the other's. It polls.
 */
static long ep_wait_borrower(u32 epfd, u64 user, long max, u64 deadline)
{
	static u64 node_first;		/* one bit for each epoll, by the lower bits of its number: see node_turn() */
	const u64 size = sizeof(struct epoll_event), bit = 1ull << epfd % 64;
	struct ep look = { .was_kicked = 1 };
	long host, node;
	bool ours;

	if (max <= 0 || max > (long)(0x7fffffff / size))
		return -EINVAL;
	look.node_first = !!(__atomic_fetch_and(&node_first, ~bit, __ATOMIC_RELAXED) & bit);
	node = node_turn(&look, epfd, user, max);
	if (node)
		return node;
	for (;;) {
		host = twin_look(&look, epfd, user, max);
		if (host == max)
			__atomic_fetch_or(&node_first, bit, __ATOMIC_RELAXED);
		if (host < 0 || host == max)
			return host;
		node = node_wait(epfd, user + host * size, max - host, host ? 0 : wait_blind(deadline));
		if (node > 0)
			node = ep_strip(user + host * size, node, &ours);
		if (node < 0)
			return host ? host : node;
		if (host + node || !wait_left(deadline))
			return host + node;
	}
}

/* Waits on one side; -EAGAIN: the epoll has become mixed and there is no event yet. */
static long ep_wait_one_side(struct ep *ep, struct gate_regs *r)
{
	u32 epfd = r->a[0];
	bool ours;
	long n;

	if (ep_child_joined(ep, epfd))
		return -EAGAIN;
	if (READ_ONCE(ep->sides) & EP_NODE) {
		n = image_pass(r);
	} else {
		__atomic_fetch_add(&ep->host_waiters, 1, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&ep->sides, __ATOMIC_SEQ_CST) & EP_NODE)
			n = -EAGAIN;
		else
			n = gate_host_regs(r);
		ep_host_wait_end(ep, epfd);
	}
	if (n <= 0 || likely(!(READ_ONCE(ep->sides) & EP_MIXED) && !READ_ONCE(ep->shared)))
		return n;
	n = ep_strip(r->a[1], n, &ours);
	if (n < 0 || !ours)
		return n;
	ep_share(epfd);		/* another process may have made it mixed */
	return n ? n : -EAGAIN;
}

/* Reads the wait's time-out, for any of the three calls. */
static long ep_deadline(struct gate_regs *r, u64 *deadline)
{
	s32 ms = r->a[3];

	if (r->nr == __NR_epoll_pwait2)
		return wait_from_timespec(r->a[3], deadline);
	if (ms < 0)
		*deadline = WAIT_FOREVER;
	else
		*deadline = ms ? wait_until_ns(ms * 1000000ull) : 0;
	return 0;
}

long do_epoll_wait(struct gate_regs *r)
{
	u32 epfd = r->a[0];
	bool masked = false, takes_mask = r->nr != __NR_epoll_wait;
	u64 deadline, set;
	bool borrowed;
	struct ep *ep;
	u32 sides;
	long ret;

	if (!fd_is_node(epfd))
		return unlikely(reserved_fd(epfd)) ? -EBADF : gate_host_regs(r);
	ep = ep_get(epfd);
	borrowed = !ep && ep_is_borrowed(epfd);
	sides = ep ? READ_ONCE(ep->sides) & (EP_HOST | EP_NODE) : borrowed ? EP_HOST | EP_NODE : EP_NODE;
	if (sides == EP_HOST)
		sides = 0;

	/* If the host does the waiting, it applies the mask itself. */
	if (takes_mask && r->a[4] && (sides || !ep)) {
		if (r->a[5] != sizeof(set))
			return -EINVAL;
		if (gate_copy_in(&set, user_ptr(r->a[4]), sizeof(set)))
			return -EFAULT;
		masked = true;
	}
	if (sides != (EP_HOST | EP_NODE)) {
		struct gate_regs plain = *r;

		if (masked) {
			plain.a[4] = 0;
			gate_sigmask_begin(set);
		} else if (takes_mask) {
			gate_hostmask_begin(r->a[4]);
		}
		ret = ep ? ep_wait_one_side(ep, &plain) : image_pass(&plain);
		if (masked)
			gate_sigmask_end(ret);
		else if (takes_mask)
			gate_hostmask_end(ret);
		if (ret != -EAGAIN)
			return ret;
		return do_epoll_wait(r);	/* it has become mixed, and stays so */
	}

	ret = ep_deadline(r, &deadline);
	if (ret)
		return ret;
	if (masked)
		gate_sigmask_begin(set);
	if (likely(ep))
		ret = ep_wait_mixed(ep, epfd, r->a[1], (s32)r->a[2], deadline);
	else
		ret = ep_wait_borrower(epfd, r->a[1], (s32)r->a[2], deadline);
	if (masked)
		gate_sigmask_end(ret);
	return ret;
}
