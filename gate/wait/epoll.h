/* SPDX-License-Identifier: GPL-2.0 */
/*
 * epoll.h - shared by epoll.c, epoll_nested.c and epoll_wait.c
 */
#ifndef RING3_GATE_EPOLL_H
#define RING3_GATE_EPOLL_H

#include "policy.h"

#define MAGIC		0x52334d6978656421ull	/* epoll_data of the gate's own members */

struct ep {
	u32 refs;		/* descriptors of it */
	u32 sides;		/* enum ep_side */
	u32 armed;		/* the feeder will report the twin's next event */
	u32 maybe;		/* the twin may have events: look at it before waiting */
	u32 host_waiters;	/* threads waiting on the twin itself */
	u32 node_waiters;	/* threads in ep_wait_once() */
	u32 kicked;		/* the kick is a member of the twin */
	u32 was_kicked;		/* ... or has been: one of its events may still arrive */
	u32 shared;		/* with another process, which may make it mixed */
	u32 node_first;		/* the last answer was full of the twin's events: now it is the node's turn */
	u32 polled;		/* it is polled itself: no extra member in the node's epoll */
	u32 member;		/* the feeder's proxy is a member of the node's epoll */
	u32 nests;		/* has, or has had, epolls as members */
	u32 inside;		/* is, or has been, a member of an epoll */
	u64 looked;		/* TSC of the last look into the twin */
	u64 joins;		/* members added by children, when they were counted last */
};

struct ep *ep_get(u32 fd);
long ep_mix(struct ep *ep, u32 epfd);		/* makes it wait on both sides */
bool ep_arm_ep(struct ep *ep, u32 fd);
void ep_host_wait_end(struct ep *ep, u32 epfd);
bool ep_child_joined(struct ep *ep, u32 epfd);

/* epoll_wait.c */
/*
 * Keeps those of the n events at `user' for which keeps() is true; returns their number. `lock' is held for some
 * events at a time; NULL: no lock.
 */
long ep_filter(u64 user, long n, struct gate_mutex *lock, bool (*keeps)(const struct epoll_event *ev, void *arg), void *arg);

/* epoll_nested.c */
void ep_nested_note(struct ep *outer, struct ep *inner, u32 op, u32 fd, const struct epoll_event *ev);
void ep_nested_forget(struct ep *ep);		/* it has been closed */
long ep_nested_once(struct ep *ep, u32 epfd, u64 user, long n);

#endif /* RING3_GATE_EPOLL_H */
