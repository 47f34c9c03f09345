// SPDX-License-Identifier: GPL-2.0
/*
 * epoll_nested.c - epolls inside epolls tell of themselves once
 *
 * An epoll inside another is a member on both sides: the twin in the twin, the node's in the node's. Where
 * both have something ready, both say so, with the same data. Linux knows one member, and programs count on
 * that, above all with EPOLLONESHOT: the thread that has had the event may have freed what the data points to. So
 * nested members are noted here by what their events look like, an answer keeps one event of each, and the
 * first event of a one-shot member disarms it on the other side.
 *
 * Two threads may have got an event each, one from either side, before that: `fired` tells the second
 * to forget it. Not where other processes have the epoll, too, and may arm the member again without our
 * knowing.
 *
 * Only data tells whose an event is. Others with the same data, of which one gets lost here, tell
 * the program the same. Where there are more than NESTED such members, or another process made them, each
 * side has its say.
 */
#include "wait/epoll.h"

#define NESTED		256
#define INS		(EPOLLIN | EPOLLRDNORM)	/* all that an epoll ever is */

struct nested {
	struct ep *outer, *inner;
	u32 fd;			/* the inner one's number in the outer one */
	u32 events;
	u64 data;
	bool fired;		/* one-shot, and not armed since */
};

struct told {			/* in this answer, by index */
	struct ep *ep;		/* whose it is */
	u32 epfd;
	u32 moves;		/* nested_moves as of then */
	u64 once[NESTED / 64];
	u64 twice[NESTED / 64];
};

static struct nested nested[NESTED] GATE_TABLE;
static u32 nested_used;
static u32 nested_moves;	/* how often an index has come to mean another member */

static void forget_at(u32 i)
{
	nested[i] = nested[--nested_used];
	nested_moves++;
}

/* All with ep_lock, from here on. */
void ep_nested_forget(struct ep *ep)
{
	u32 i;

	for (i = nested_used; i-- > 0;)
		if (nested[i].outer == ep || nested[i].inner == ep)
			forget_at(i);
}

/* A successful epoll_ctl(). */
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

/* The one-shot member has had its event, by whichever side: it is armed on neither. */
static void disarm(u32 epfd, struct nested *m)
{
	struct epoll_event ev = { .events = EPOLLONESHOT, .data = m->data };

	m->fired = true;
	host_syscall4(__NR_epoll_ctl, epfd, EPOLL_CTL_MOD, m->fd, (long)&ev);
	image_call4(__NR_epoll_ctl, epfd, EPOLL_CTL_MOD, m->fd, &ev);
}

/* Is this event for the program? */
static bool is_news(const struct epoll_event *ev, void *arg)
{
	struct told *told = arg;
	u32 i, other = NESTED;
	struct nested *m;

	if (ev->events & ~INS)
		return true;
	/* Between two parts of a long answer others may have the lock. An event told twice is better than one that is lost. */
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
	/* The other side's word about a member that has been told of. */
	return other == NESTED || bit_was_set(told->twice, other);
}

/* Of n events at `user`, those that are to stay there; returns how many. 0: go on waiting. */
long ep_nested_once(struct ep *ep, u32 epfd, u64 user, long n)
{
	struct told told = { .ep = ep, .epfd = epfd };

	return ep_filter(user, n, &ep_lock, is_news, &told);
}
