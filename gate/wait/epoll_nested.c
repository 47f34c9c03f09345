// SPDX-License-Identifier: GPL-2.0
/*
 * epoll_nested.c - an epoll inside an epoll reports each event once
 *
 * An epoll inside another is a member on both sides: twin in twin, node epoll in node epoll. If both have events,
 * both report the inner epoll, with the same data. On Linux it is one member, and programs rely on that, above all
 * with EPOLLONESHOT: the thread that got the event may have freed what the data points to. So the gate records
 * nested members by their event data, an answer keeps one event of each, and the first event of a one-shot member
 * disarms it on the other side.
 *
 * Before that, two threads may each have got an event, one from either side: `fired` tells the second to drop it.
 * Not if other processes have the epoll, too, and may arm the member again without the gate's knowledge.
 *
 * An event is matched by its data only. If other members have the same data, an event of one of them may be dropped
 * here, but the program can't tell them apart. If there are more than NESTED such members, or another process made
 * them, each side reports its own events.
 */
#include "wait/epoll.h"

#define NESTED		256
#define INS		(EPOLLIN | EPOLLRDNORM)	/* all events that an epoll can have */

struct nested {
	struct ep *outer, *inner;
	u32 fd;			/* the inner epoll's number when it was added */
	u32 events;
	u64 data;
	bool fired;		/* one-shot, and not armed since */
};

struct told {			/* members reported in this answer, by index */
	struct ep *ep;		/* the outer epoll */
	u32 epfd;
	u32 moves;		/* value of nested_moves at that time */
	u64 once[NESTED / 64];
	u64 twice[NESTED / 64];
};

static struct nested nested[NESTED] GATE_TABLE;
static u32 nested_used;
static u32 nested_moves;	/* how often an entry was reused for another member */

static void forget_at(u32 i)
{
	nested[i] = nested[--nested_used];
	nested_moves++;
}

/* All functions from here on are called with ep_lock held. */
void ep_nested_forget(struct ep *ep)
{
	u32 i;

	for (i = nested_used; i-- > 0;)
		if (nested[i].outer == ep || nested[i].inner == ep)
			forget_at(i);
}

/* Called after a successful epoll_ctl(). */
void ep_nested_note(struct ep *outer, struct ep *inner, u32 op, u32 fd, const struct epoll_event *ev)
{
	u32 i;

	for (i = 0; i < nested_used; i++)
		if (nested[i].outer == outer && nested[i].fd == fd)
			break;
	if (op == EPOLL_CTL_DEL) {
		if (i < nested_used)
			forget_at(i);
		return;
	}
	if (i == nested_used) {
		if (op != EPOLL_CTL_ADD || i == NESTED)
			return;
		nested_used++;
	}
	nested[i] = (struct nested){
		.outer = outer, .inner = inner, .fd = fd, .events = ev->events, .data = ev->data,
	};
}

static bool bit_was_set(u64 *bits, u32 i)
{
	bool was = bits[i / 64] >> (i % 64) & 1;

	bits[i / 64] |= 1ull << (i % 64);
	return was;
}

/* The one-shot member has had its event, on either side: disarms it on both. */
static void disarm(u32 epfd, struct nested *m)
{
	struct epoll_event ev = { .events = EPOLLONESHOT, .data = m->data };

	m->fired = true;
	host_syscall4(__NR_epoll_ctl, epfd, EPOLL_CTL_MOD, m->fd, (long)&ev);
	image_call4(__NR_epoll_ctl, epfd, EPOLL_CTL_MOD, m->fd, &ev);
}

/* Should the program see this event? */
static bool is_news(const struct epoll_event *ev, void *arg)
{
	struct told *told = arg;
	u32 i, other = NESTED;
	struct nested *m;

	if (ev->events & ~INS)
		return true;
	/*
	 * Between two parts of a long answer other threads may have had the lock. An event that is reported twice
	 * is better than a lost one.
	 */
	if (unlikely(told->moves != nested_moves)) {
		memset(told->once, 0, sizeof(told->once));
		memset(told->twice, 0, sizeof(told->twice));
		told->moves = nested_moves;
	}
	for (i = 0; i < nested_used; i++) {
		m = &nested[i];
		if (m->outer != told->ep || m->data != ev->data)
			continue;
		if (bit_was_set(told->once, i)) {
			if (!(told->twice[i / 64] >> (i % 64) & 1))
				other = i;
			continue;
		}
		if (!(m->events & EPOLLONESHOT))
			return true;
		if (m->fired && !READ_ONCE(told->ep->shared))
			return false;
		disarm(told->epfd, m);
		return true;
	}
	/* The other side's event of a member that has been reported. */
	return other == NESTED || bit_was_set(told->twice, other);
}

/* Keeps those of n events at `user` that the program should see; returns their number. 0: wait on. */
long ep_nested_once(struct ep *ep, u32 epfd, u64 user, long n)
{
	struct told told = { .ep = ep, .epfd = epfd };

	return ep_filter(user, n, &ep_lock, is_news, &told);
}
