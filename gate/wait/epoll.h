/* SPDX-License-Identifier: GPL-2.0 */
/*
 * epoll.h - what epoll.c, epoll_nested.c and epoll_wait.c share
 */
#ifndef RING3_GATE_EPOLL_H
#define RING3_GATE_EPOLL_H

#include "policy.h"

#define MAGIC		0x52334d6978656421ull	/* epoll_data of our own members */

struct ep {
	u32 refs;		/* numbers that have it */
	u32 sides;		/* enum ep_side */
	u32 armed;		/* the feeder will tell of the twin's next event */
	u32 maybe;		/* the twin may have events: look before waiting */
	u32 host_waiters;	/* threads waiting on the twin itself */
	u32 node_waiters;	/* threads in ep_wait_once() */
	u32 kicked;		/* the kick is a member of the twin */
	u32 was_kicked;		/* ... or has been: an event of it may be on its way still */
	u32 shared;		/* with another process, which may make it mixed */
	u32 node_first;		/* the twin has filled the last answer: now it is the node's turn */
	u32 polled;		/* it is polled itself: no member of ours in the node's epoll */
	u32 member;		/* the feeder's proxy is a member of the node's epoll */
	u32 nests;		/* has, or has had, epolls as members */
	u32 inside;		/* is, or has been, such a member */
	u64 looked;		/* TSC of the last look into the twin */
};

struct ep *ep_get(u32 fd);
long ep_mix(struct ep *ep, u32 epfd);		/* have it wait on both sides */
bool ep_arm_ep(struct ep *ep, u32 fd);
void ep_host_wait_end(struct ep *ep, u32 epfd);

/* epoll_wait.c */
/* Of n events at `user', those that it keeps; returns how many. `lock' is held over some of them at once; NULL: none. */
long ep_filter(u64 user, long n, struct gate_mutex *lock, bool (*keeps)(const struct epoll_event *ev, void *arg), void *arg);

/* epoll_nested.c */
void ep_nested_note(struct ep *outer, struct ep *inner, u32 op, u32 fd, const struct epoll_event *ev);
void ep_nested_forget(struct ep *ep);		/* it is closed */
long ep_nested_once(struct ep *ep, u32 epfd, u64 user, long n);

#endif /* RING3_GATE_EPOLL_H */
