/* SPDX-License-Identifier: GPL-2.0 */
/*
 * link.h - a link port's state, shared by link.c (packets) and link_peer.c (the far side)
 */
#ifndef RING3_NET_LINK_H
#define RING3_NET_LINK_H

#include <linux/workqueue.h>

#include "hostio.h"
#include "link_ring.h"
#include "port.h"

struct link_port {
	struct ring3_link *mem;
	struct ring3_side *self;
	struct ring3_side *peer;
	u32 ring_bytes;
	u32 side;

	struct link_tx tx ____cacheline_aligned;	/* TX queue's lock */
	u32 wanted;			/* the position that the stopped queue waits for; 0: it does not wait. Same lock */

	struct link_rx rx ____cacheline_aligned;	/* NAPI */
	struct page_frag frag;
	bool polled;			/* the idle loop watches the ring */
	bool complained;		/* a broken ring was logged */
	u32 peer_up;			/* last seen value */

	struct delayed_work look;	/* periodic check: does the far side's keeper live? */
	unsigned int look_period;	/* jiffies */
	s32 peer_pid;			/* seen alive; 0: not known */
	struct ring3_port *port;
};

static inline struct link_port *to_link(const struct ring3_port *port)
{
	return ring3_port_priv(port);
}

static inline void link_ring_doorbell(struct link_port *link)
{
	link_inc(&link->peer->doorbell);
	ring3_host_wake(&link->peer->doorbell);
}

/* link_peer.c */
void link_attach(struct link_port *link);
int link_watch(struct ring3_port *port, struct link_port *link);
void link_unwatch(struct ring3_port *port, struct link_port *link);
void link_broken(struct ring3_port *port, struct link_port *link);
void link_check_carrier(struct ring3_port *port, struct link_port *link);
void link_look(struct work_struct *work);
void link_look_start(struct link_port *link);
void link_look_soon(struct link_port *link);

#endif /* RING3_NET_LINK_H */
